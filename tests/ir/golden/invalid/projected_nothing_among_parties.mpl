// error: VerifyError: simp.nothing at a.py:1 is part of a projection
program "p" on {0, 1} () {
  %0 = simp.nothing() {kind = f32[]} : f32[]@? at "a.py:1"
  return %0
}
