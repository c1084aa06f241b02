program "nested" on {0, 1} (%0: bool[]@{0, 1}, %1: i64[]@{0, 1}) {
  %20 = func.call(%0, %1) {name = "step"} body (%2: bool[]@{0, 1}, %3: i64[]@{0, 1}) {
    %18, %19 = simp.while_loop(%2, %3) {verify_uniform = false} cond (%4: bool[]@{0, 1}, %5: i64[]@{0, 1}) {
      return %4
    } body (%6: bool[]@{0, 1}, %7: i64[]@{0, 1}) {
      %17 = simp.uniform_cond(%6, %7) {verify_uniform = true} then (%8: i64[]@{0, 1}) {
        %14 = func.call(%8) {name = "inner"} body (%9: i64[]@{0, 1}) {
          %13 = simp.pcall_static(%9) {parties = {0, 1}} do (%10: i64[]) {
            %11 = toy.rank() : i64[]
            %12 = toy.mul(%10, %11) : i64[]
            return %12
          } : i64[]@{0, 1}
          return %13
        } : i64[]@{0, 1}
        return %14
      } else (%15: i64[]@{0, 1}) {
        simp.pcall_static(%15) {parties = {1}} do (%16: i64[]) {
          irtest.any() {value = ["deep", [2]]}
          return
        }
        return %15
      } : i64[]@{0, 1}
      return %6, %17
    } : bool[]@{0, 1}, i64[]@{0, 1}
    return %19
  } : i64[]@{0, 1}
  return %20
}
