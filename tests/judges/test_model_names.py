"""Models that cannot be asked are refused before anything is asked; a model that is new is not."""

import logging

import pytest

from judge_calibration.errors import OptionsError
from judge_calibration.judges.model_names import check_model_names
from judge_calibration.options.judging import JudgeSpec


def judge(model: str, **transport: object) -> JudgeSpec:
    return JudgeSpec.model_validate(
        {"judge_id": f"judge-of-{model}", "model": model, "protocols": ["direct"], "transport": transport}
    )


class TestProviders:
    def test_every_unknown_one_is_named_with_the_nearest_that_is_known(self):
        judges = [judge("opnai/gpt-4.1"), judge("anthropc/claude-x"), judge("openai/gpt-4.1")]
        with pytest.raises(OptionsError) as refused:
            check_model_names(judges)
        told = str(refused.value)
        assert "judge-of-opnai/gpt-4.1" in told
        assert "did you mean openai/gpt-4.1?" in told
        assert "did you mean anthropic/claude-x?" in told
        assert "judge-of-openai" not in told

    def test_a_model_without_a_provider_that_nothing_resembles(self):
        with pytest.raises(
            OptionsError, match=r"'qqqqqqqq'; wanted a provider's name before the first slash\n"
        ):
            check_model_names([judge("qqqqqqqq")])

    @pytest.mark.parametrize(
        "known",
        [
            judge("hosted_vllm/my-own", api_base="http://127.0.0.1:1/v1"),
            judge("azure/my-deployment"),
            judge("embedded/smollm2-135m-instruct"),
            judge("scripted/fair", transport="scripted"),
            judge("mine", transport="openai_http", api_base="http://127.0.0.1:1/v1"),
        ],
        ids=lambda one: one.model,
    )
    def test_others_pass_in_silence(self, known, caplog):
        with caplog.at_level(logging.WARNING):
            check_model_names([known])
        assert not caplog.records


class TestModels:
    def test_one_that_the_list_lacks_is_told_with_its_neighbour_and_passes(self, caplog):
        with caplog.at_level(logging.WARNING):
            check_model_names(
                [judge("openai/gpt-4.1-minni-2025-04-14"), judge("openai/gpt-4.1-mini-2025-04-14")]
            )
        (told,) = caplog.messages
        assert "no 'gpt-4.1-minni-2025-04-14'; the nearest name is 'gpt-4.1-mini-2025-04-14'" in told
