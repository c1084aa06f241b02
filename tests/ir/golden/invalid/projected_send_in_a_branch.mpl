// error: VerifyError: simp.send at a.py:2 is part of a projection
program "p" on {0, 1} (%0: bool[]@{0, 1}, %1: f32[]@{0}) {
  simp.uniform_cond(%0, %1) {verify_uniform = true} else (%2: f32[]@{0}) {
    return
  } then (%3: f32[]@{0}) {
    simp.send(%3) {place = 1, to = {1}} at "a.py:2"
    return
  } at "a.py:1"
  return
}
