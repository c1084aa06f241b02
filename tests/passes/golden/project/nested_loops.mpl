program "p" on {0, 1, 2} (%0: bool[]@{0, 1, 2}, %1: i64[]@{0, 1}) {
  %2 = simp.constant() {parties = {2}, value = dense<i64[]>[9]} : i64[]@{2}
  %21, %22 = simp.while_loop(%0, %1) {verify_uniform = false} cond (%3: bool[]@{0, 1, 2}, %4: i64[]@{0, 1}) {
    return %3
  } body (%5: bool[]@{0, 1, 2}, %6: i64[]@{0, 1}) {
    %19, %20 = simp.while_loop(%5, %6) {verify_uniform = true} cond (%7: bool[]@{0, 1, 2}, %8: i64[]@{0, 1}) {
      return %7
    } body (%9: bool[]@{0, 1, 2}, %10: i64[]@{0, 1}) {
      %18 = simp.uniform_cond(%9, %10) {verify_uniform = true} then (%11: i64[]@{0, 1}) {
        %12 = simp.shuffle_static(%11) {routing = [[2, 0]]} : i64[]@{2}
        %13 = simp.shuffle_static(%12) {routing = [[0, 2], [1, 2]]} : i64[]@{0, 1}
        return %13
      } else (%14: i64[]@{0, 1}) {
        %17 = func.call(%14) {name = "swap"} body (%15: i64[]@{0, 1}) {
          %16 = simp.shuffle_static(%15) {routing = [[0, 1], [1, 0]]} : i64[]@{0, 1}
          return %16
        } : i64[]@{0, 1}
        return %17
      } : i64[]@{0, 1}
      return %9, %18
    } : bool[]@{0, 1, 2}, i64[]@{0, 1}
    return %19, %20
  } : bool[]@{0, 1, 2}, i64[]@{0, 1}
  return %22, %2
}

program "p" on {0} (%0: bool[]@{0}, %1: i64[]@{0}) {
  %19, %20 = simp.while_loop(%0, %1) {place = 1, verify_uniform = false} cond (%2: bool[]@{0}, %3: i64[]@{0}) {
    return %2
  } body (%4: bool[]@{0}, %5: i64[]@{0}) {
    %17, %18 = simp.while_loop(%4, %5) {place = 0, verify_uniform = true} cond (%6: bool[]@{0}, %7: i64[]@{0}) {
      return %6
    } body (%8: bool[]@{0}, %9: i64[]@{0}) {
      %16 = simp.uniform_cond(%8, %9) {place = 0, verify_uniform = true} then (%10: i64[]@{0}) {
        simp.send(%10) {place = 0, to = {2}}
        %11 = simp.recv() {kind = i64[], place = 1, source = 2} : i64[]@{0}
        return %11
      } else (%12: i64[]@{0}) {
        %15 = func.call(%12) {name = "swap", place = 0} body (%13: i64[]@{0}) {
          simp.send(%13) {place = 0, to = {1}}
          %14 = simp.recv() {kind = i64[], place = 0, source = 1} : i64[]@{0}
          return %14
        } : i64[]@{0}
        return %15
      } : i64[]@{0}
      return %8, %16
    } : bool[]@{0}, i64[]@{0}
    return %17, %18
  } : bool[]@{0}, i64[]@{0}
  return %20
}

program "p" on {1} (%0: bool[]@{1}, %1: i64[]@{1}) {
  %19, %20 = simp.while_loop(%0, %1) {place = 1, verify_uniform = false} cond (%2: bool[]@{1}, %3: i64[]@{1}) {
    return %2
  } body (%4: bool[]@{1}, %5: i64[]@{1}) {
    %17, %18 = simp.while_loop(%4, %5) {place = 0, verify_uniform = true} cond (%6: bool[]@{1}, %7: i64[]@{1}) {
      return %6
    } body (%8: bool[]@{1}, %9: i64[]@{1}) {
      %16 = simp.uniform_cond(%8, %9) {place = 0, verify_uniform = true} then (%10: i64[]@{1}) {
        %11 = simp.recv() {kind = i64[], place = 1, source = 2} : i64[]@{1}
        return %11
      } else (%12: i64[]@{1}) {
        %15 = func.call(%12) {name = "swap", place = 0} body (%13: i64[]@{1}) {
          simp.send(%13) {place = 0, to = {0}}
          %14 = simp.recv() {kind = i64[], place = 0, source = 0} : i64[]@{1}
          return %14
        } : i64[]@{1}
        return %15
      } : i64[]@{1}
      return %8, %16
    } : bool[]@{1}, i64[]@{1}
    return %17, %18
  } : bool[]@{1}, i64[]@{1}
  return %20
}

program "p" on {2} (%0: bool[]@{2}) {
  %1 = simp.constant() {parties = {2}, value = dense<i64[]>[9]} : i64[]@{2}
  %8 = simp.while_loop(%0) {place = 1, verify_uniform = false} cond (%2: bool[]@{2}) {
    return %2
  } body (%3: bool[]@{2}) {
    %7 = simp.while_loop(%3) {place = 0, verify_uniform = true} cond (%4: bool[]@{2}) {
      return %4
    } body (%5: bool[]@{2}) {
      simp.uniform_cond(%5) {place = 0, verify_uniform = true} then () {
        %6 = simp.recv() {kind = i64[], place = 0, source = 0} : i64[]@{2}
        simp.send(%6) {place = 1, to = {0, 1}}
        return
      } else () {
        return
      }
      return %5
    } : bool[]@{2}
    return %7
  } : bool[]@{2}
  return %1
}
