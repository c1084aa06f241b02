program "p" on {0, 1} (%0: i64[]@{0, 1}) {
  %3 = simp.pcall_static(%0) {parties = {0}} do (%1: i64[]) {
    %2 = parts.note(%1) : i64[] at "a.py:1"
    return %2
  } : i64[]@{0}
  %6 = simp.pcall_static(%0) {parties = {0, 1}} do (%4: i64[]) {
    %5 = parts.neighbour(%4) : i64[] at "a.py:2"
    return %5
  } : i64[]@{0, 1}
  %9 = simp.pcall_static(%0) {parties = {0}} do (%7: i64[]) {
    %8 = parts.note(%7) : i64[] at "a.py:3"
    return %8
  } : i64[]@{0}
  %12 = simp.pcall_static(%3) {parties = {0}} do (%10: i64[]) {
    %11 = parts.note(%10) : i64[] at "a.py:4"
    return %11
  } : i64[]@{0}
  %15 = simp.pcall_static(%6) {parties = {1}} do (%13: i64[]) {
    %14 = kit.add(%13, %13) : i64[] at "a.py:5"
    return %14
  } : i64[]@{1}
  %18 = simp.pcall_static(%12) {parties = {0}} do (%16: i64[]) {
    %17 = kit.add(%16, %16) : i64[] at "a.py:6"
    return %17
  } : i64[]@{0}
  return %9, %15, %18
}

program "p" on {0, 1} (%0: i64[]@{0, 1}) {
  %3 = simp.pcall_static(%0) {parties = {0}} do (%1: i64[]) {
    %2 = parts.note(%1) : i64[] at "a.py:1"
    return %2
  } : i64[]@{0}
  %6 = simp.pcall_static(%0) {parties = {0, 1}} do (%4: i64[]) {
    %5 = parts.neighbour(%4) : i64[] at "a.py:2"
    return %5
  } : i64[]@{0, 1}
  %12, %13 = simp.pcall_static(%0, %3) {parties = {0}} do (%7: i64[], %8: i64[]) {
    %9 = parts.note(%7) : i64[] at "a.py:3"
    %10 = parts.note(%8) : i64[] at "a.py:4"
    %11 = kit.add(%10, %10) : i64[] at "a.py:6"
    return %9, %11
  } : i64[]@{0}, i64[]@{0}
  %16 = simp.pcall_static(%6) {parties = {1}} do (%14: i64[]) {
    %15 = kit.add(%14, %14) : i64[] at "a.py:5"
    return %15
  } : i64[]@{1}
  return %12, %16, %13
}
