"""Fine-tuning a judge on its own prompts: the verdict token is the only target, the adapter is LoRA.

torch, transformers and peft are in the extra ``sft`` (``make env-sft``). What needs none of them, the
prompts, the token cap, the form of the adapter file and its checks, works in the main environment.
"""
