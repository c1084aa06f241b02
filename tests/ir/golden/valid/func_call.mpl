program "func_call" on {0, 1} (%0: f32[]@{0}) {
  %5, %6 = func.call(%0) {name = "outer"} body (%1: f32[]@{0}) {
    %4 = func.call(%1) {name = "inner \"x\""} body (%2: f32[]@{0}) {
      %3 = simp.shuffle_static(%2) {routing = [[1, 0]]} : f32[]@{1}
      return %3
    } : f32[]@{1}
    return %4, %1
  } : f32[]@{1}, f32[]@{0}
  return %6, %5
}
