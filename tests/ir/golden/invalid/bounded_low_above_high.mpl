// error: VerifyError: low is not above high, got (1, 0)
program "p" on {0, 1} (%0: f32[]@{0}) {
  %2 = simp.pcall_static(%0) {parties = {0}} do (%1: f32[]) {
    %3 = simp.bounded(%1) {high = 0, low = 1} : f32[]
    return %3
  } : f32[]@{0}
  return %2
}
