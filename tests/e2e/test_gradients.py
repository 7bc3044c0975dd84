"""Gradients of functions and modules by autograd: asked for by a flag or by the file, compared, and timed as a pass of their own."""
import os
import unittest

from lab import Lab, attempts

FILE = f"{os.environ['SYSLAB_FUNCTIONS']}/gradients.py"


class Gradients(Lab):
    def environment(self):
        return {**super().environment(), "SYSLAB_PYTHON": os.environ["SYSLAB_PYTHON"]}

    def of_each(self, names, *arguments, expect, reference="reference", inputs="cases"):
        mine = [word for name in names for word in ("--mine", f"{name}={FILE}:{name}")]
        ended = attempts(self.lines("check", *mine, "--reference", f"{FILE}:{reference}", "--inputs", f"{FILE}:{inputs}", "--impl",
                                    ",".join(names), *arguments, expect=expect))
        return {(one["impl"], one["params"].get("n"), one["params"]["pass"]): one for one in ended}

    def test_a_flag_makes_each_cases_gradients_a_case(self):
        ended = self.of_each(("ByHand", "Forgets", "fails_backward"), "--backward", expect=1)  # more would import torch anew for each case
        statuses = {key: one["status"] for key, one in ended.items()}
        wanted = {(name, n, "forward"): "ok" for name in ("ByHand", "Forgets", "fails_backward") for n in (24, 40)}
        for n in (24, 40):
            wanted.update({("ByHand", n, "backward"): "ok", ("Forgets", n, "backward"): "check_failed"})
        wanted.update({("fails_backward", 24, "backward"): "ok", ("fails_backward", 40, "backward"): "error"})
        self.assertEqual(statuses, wanted)
        self.assertIn("d(x)", ended["Forgets", 24, "backward"]["detail"])
        self.assertIn("no kernel for 40 columns (gradients.py", ended["fails_backward", 40, "backward"]["detail"])
        times = self.sql("SELECT params ->> '$.pass', count(*) FROM v_latest WHERE metric = 'time' AND implementation = 'ByHand' GROUP BY 1")
        self.assertEqual(times, [("backward", 2), ("forward", 2)])

    def test_gradients_with_other_strides_are_read_as_they_are_or_refused(self):
        ended = self.of_each(("ReadsByItsOwnStrides", "RefusesOtherStrides"), "-a", "n=24", "-a", "pass=backward",
                             inputs="cases_with_gradients", expect=1)
        self.assertEqual([one["status"] for one in ended.values()], ["check_failed", "ok"])
        self.assertIn("strides (48, 2)", ended["ReadsByItsOwnStrides", 24, "backward"]["detail"])

    def test_the_gradient_and_the_arguments_stay_the_callers(self):
        said = {"TurnsTheGradient": "'d(out)': shape from (6, 24) to (24, 6)", "locks_the_weight": "'weight': requires_grad from True to False"}
        for (name, *_), ended in self.of_each(said, "-a", "n=24", "-a", "pass=backward", inputs="cases_with_gradients", expect=1).items():
            self.assertEqual(ended["status"], "check_failed")
            self.assertIn(f"the call changed its argument {said[name]}; whoever calls", ended["detail"])

    def test_the_file_asks_for_them_and_an_axis_chooses(self):
        ended = self.of_each(("ByHand", "detached"), "-a", "pass=backward", "-a", "n=24", inputs="cases_with_gradients", expect=1)
        self.assertEqual({key: one["status"] for key, one in ended.items()},
                         {("ByHand", 24, "backward"): "ok", ("detached", 24, "backward"): "check_failed"})
        self.assertIn("'out' has no gradient", ended["detached", 24, "backward"]["detail"])
        bounds = self.sql("SELECT DISTINCT facts ->> '$.bound', facts ->> '$.reference_in' FROM v_attempt WHERE status = 'ok'")
        self.assertEqual(bounds, [("derived", "float64")])

    def test_a_modules_parameters_have_gradients_too(self):
        ended = self.of_each(("SameLayer", "WrongBias"), "-a", "pass=backward", reference="Layer", inputs="inputs_of_layer", expect=1)
        self.assertEqual([one["status"] for one in ended.values()], ["ok", "check_failed"])
        self.assertIn("d(inner.bias)", ended["WrongBias", None, "backward"]["detail"])

    def test_a_gradient_that_goes_through_unchanged_is_right(self):
        self.of_each(("added",), "-a", "n=24", "-a", "pass=backward", reference="added", inputs="cases_with_gradients", expect=0)


if __name__ == "__main__":
    unittest.main()
