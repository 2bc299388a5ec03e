"""Give a model another chat template: a model folder with the same weights, as links, for every engine.

Reads  model: a model folder or a Hub id, with or without a chat template.
Writes output: a model folder with a manifest; template and EOS belong together, and are checked.

    compositionality set_chat_template model=MODEL output=FOLDER chat_template=plain

own: the model's. llama-3.1: Llama-3.1-Instruct's, with its system block of two date lines. plain: the same without the
system block. qwen2.5: Qwen2.5's, with its system turn. qwen3: Qwen3's without thinking. Or a Jinja file.
"""

from compositionality.config.profile import EntryPoint
from compositionality.train.chat_template import ChatTemplateSettings, check, set_chat_template

VERB = EntryPoint(ChatTemplateSettings, set_chat_template, check)
