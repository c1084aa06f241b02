// error: VerifyError: func.call at a.py:1 is part of a projection
program "p" on {0, 1} (%0: f32[]@{0}) {
  %1 = func.call(%0) {name = "f", place = 3} body (%2: f32[]@{0}) {
    return %2
  } : f32[]@{0} at "a.py:1"
  return %1
}
