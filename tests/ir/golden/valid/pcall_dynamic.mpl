program "pcall_dynamic" on {0, 1} (%0: f32[2]@?, %1: f32[2]@{0}) {
  %5 = simp.pcall_dynamic(%0, %1) do (%2: f32[2], %3: f32[2]) {
    %4 = toy.mul(%2, %3) : f32[2]
    return %4
  } : f32[2]@?
  %7 = simp.pcall_static(%5) {parties = {0}} do (%6: f32[2]) {
    return %6
  } : f32[2]@{0}
  return %5, %7
}
