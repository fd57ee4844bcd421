"""What runs inside graders, and nowhere else: one module for each library that grades."""
