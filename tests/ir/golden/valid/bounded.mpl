program "bounded" on {0, 1} (%0: f32[3]@{0}, %1: i64[]@{1}) {
  %4 = simp.pcall_static(%0) {parties = {0}} do (%2: f32[3]) {
    %3 = simp.bounded(%2) {high = 1.5, low = -inf} : f32[3]
    return %3
  } : f32[3]@{0}
  %7 = simp.pcall_static(%1) {parties = {1}} do (%5: i64[]) {
    %6 = simp.bounded(%5) {high = 9223372036854775807, low = 0} : i64[]
    return %6
  } : i64[]@{1}
  return %4, %7
}
