"""The suites of this package, one module each; `plugins.BUILT_IN` names them."""
