program "shuffles" on {0, 1, 2} (%0: f64[2]@{0, 1}, %1: i32[]@{1, 2}, %2: f64[2]@?, %3: u8[]@?) {
  %4 = simp.shuffle_static(%0) {routing = [[2, 0]]} : f64[2]@{2}
  %5 = simp.shuffle_static(%0) {routing = [[1, 0], [0, 1], [2, 1]]} : f64[2]@{0, 1, 2}
  %6 = simp.shuffle_static(%2) {routing = [[0, 2]]} : f64[2]@{0}
  %7 = simp.shuffle_dynamic(%0, %1) : f64[2]@{1, 2}
  %8 = simp.shuffle_dynamic(%2, %3) : f64[2]@?
  return %4, %5, %6, %7, %8
}
