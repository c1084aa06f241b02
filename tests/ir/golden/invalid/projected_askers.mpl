// error: VerifyError: attribute 'askers': only projections have it
program "p" on {0, 1} (%0: f32[]@{0}, %1: i64[]@{1}) {
  %2 = simp.shuffle_dynamic(%0, %1) {askers = {0, 1}} : f32[]@{1} at "a.py:1"
  return %2
}
