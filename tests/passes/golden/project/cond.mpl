program "p" on {0, 1, 2} (%0: bool[]@{0, 1, 2}, %1: i64[]@{0}) {
  %9 = simp.uniform_cond(%0, %1) {verify_uniform = true} then (%2: i64[]@{0}) {
    %3 = simp.constant() {parties = {1}, value = dense<i64[]>[5]} : i64[]@{1} at "a.py:2"
    return %3
  } else (%4: i64[]@{0}) {
    %7 = simp.pcall_static(%4) {parties = {0}} do (%5: i64[]) {
      %6 = kit.add(%5, %5) : i64[] at "a.py:3"
      return %6
    } : i64[]@{0} at "a.py:3"
    %8 = simp.shuffle_static(%7) {routing = [[1, 0]]} : i64[]@{1} at "a.py:4"
    return %8
  } : i64[]@{1} at "a.py:5"
  return %9
}

program "p" on {0} (%0: bool[]@{0}, %1: i64[]@{0}) {
  simp.uniform_cond(%0, %1) {place = 0, verify_uniform = true} then (%2: i64[]@{0}) {
    return
  } else (%3: i64[]@{0}) {
    %6 = simp.pcall_static(%3) {parties = {0}} do (%4: i64[]) {
      %5 = kit.add(%4, %4) : i64[] at "a.py:3"
      return %5
    } : i64[]@{0} at "a.py:3"
    simp.send(%6) {place = 1, to = {1}} at "a.py:4"
    return
  } at "a.py:5"
  return
}

program "p" on {1} (%0: bool[]@{1}) {
  %3 = simp.uniform_cond(%0) {place = 0, verify_uniform = true} then () {
    %1 = simp.constant() {parties = {1}, value = dense<i64[]>[5]} : i64[]@{1} at "a.py:2"
    return %1
  } else () {
    %2 = simp.recv() {kind = i64[], place = 1, source = 0} : i64[]@{1} at "a.py:4"
    return %2
  } : i64[]@{1} at "a.py:5"
  return %3
}

program "p" on {2} (%0: bool[]@{2}) {
  simp.uniform_cond(%0) {place = 0, verify_uniform = true} then () {
    return
  } else () {
    return
  } at "a.py:5"
  return
}
