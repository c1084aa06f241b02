program "converge" on {0, 1, 2} (%0: f32[]@{0}, %1: f32[]@{1}, %2: f32[]@{2}, %3: f32[]@?) {
  %4 = simp.converge(%0, %1, %2) : f32[]@{0, 1, 2}
  %5 = simp.converge(%2, %0) : f32[]@{0, 2}
  %6 = simp.converge(%0, %3) : f32[]@?
  %7 = simp.converge(%1) : f32[]@{1}
  return %4, %5, %6, %7
}
