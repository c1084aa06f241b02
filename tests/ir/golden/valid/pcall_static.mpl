program "pcall_static" on {0, 1, 2} (%0: i64[3]@{0, 1}, %1: i64[3]@{0, 1, 2}) {
  %8, %9 = simp.pcall_static(%0, %1) {parties = {0, 1}} do (%2: i64[3], %3: i64[3]) {
    %4, %5 = toy.divmod(%2, %3) : i64[3], i64[3]
    %6 = toy.scale(%4) {by = 10} : i64[3]
    %7 = toy.less(%6, %5) : bool[3]
    return %5, %7
  } : i64[3]@{0, 1}, bool[3]@{0, 1}
  %11 = simp.pcall_static(%8) {parties = {1}} do (%10: i64[3]) {
    return %10
  } : i64[3]@{1}
  simp.pcall_static(%11) {parties = {1}} do (%12: i64[3]) {
    return
  }
  %14 = simp.pcall_static() {parties = {2}} do () {
    %13 = toy.rank() : i64[]
    return %13
  } : i64[]@{2}
  return %9, %14
}
