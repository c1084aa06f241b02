program "sparse" on {0, 5, 63, 64, 300} (%0: f32[]@{0, 300}, %1: f32[]@{}, %2: f32[]@?) {
  %6 = simp.pcall_static(%0, %2) {parties = {300}} do (%3: f32[], %4: f32[]) {
    %5 = toy.add(%3, %4) : f32[]
    return %5
  } : f32[]@{300}
  %7 = simp.converge(%6, %1) : f32[]@{300}
  return %7, %1
}
