"""Play an environment with tools as a language model would: replies go in, observations come back.

`env.unwrapped.tools` is what a chat template wants as its list of tools. `parse_action` takes the calls, or the answer,
out of a reply, in whichever form the model writes them; what it returns is the action. The model here only recites
the solution, in turn as JSON (Hermes, Qwen 2.5 and 3) and as XML (Qwen 3 Coder), and thinks a little before.
"""

import itertools
import json

import gymnasium

import synthgym

ENV_ID = "synthgym/LostProperty-v0"


def write_json(calls: list[dict]) -> str:
    return "\n".join(f"<tool_call>\n{json.dumps(call)}\n</tool_call>" for call in calls)


def write_xml(calls: list[dict]) -> str:
    written = []
    for call in calls:
        parameters = "".join(
            f"<parameter={name}>\n{value}\n</parameter>\n"
            for name, value in call["arguments"].items()
        )
        written.append(f"<function={call['name']}>\n{parameters}</function>")
    return "\n".join(f"<tool_call>\n{text}\n</tool_call>" for text in written)


def recite(solution: list[str]):
    """What a model could have replied: thinking, then calls in one of the forms, or an answer."""
    for action, write in zip(solution, itertools.cycle((write_json, write_xml))):
        request = json.loads(action)
        if "answer" in request:
            yield f"<think>Both are looked up.</think>\n<answer>{request['answer']}</answer>"
        else:
            yield f"<think>What next?</think>\n{write(request['calls'])}"


def main() -> None:
    env = gymnasium.make(ENV_ID)
    observation, info = env.reset(seed=7)
    for tool in env.unwrapped.tools:
        function = tool["function"]
        print(f"{function['name']}: {json.dumps(function['parameters']['properties'])}")
    print(f"\n{observation}\n\nHint: {env.unwrapped.hint}\n")

    # A reply without a call is no error: the environment says how one is written, and the turn is gone.
    for reply in ["Let me see what we have.", *recite(env.unwrapped.solution())]:
        parsed = synthgym.parse_action(reply, "tools")
        print(f"{reply}\n  -> {parsed.status}: {parsed.action}")
        observation, reward, terminated, truncated, info = env.step(parsed.action)
        print(f"{observation}\n  paid {reward:g}\n")
        if terminated or truncated:
            break
    print("won" if info["success"] else "not won", f"in {info['turn']} turns")
    env.close()


if __name__ == "__main__":
    main()
