// error: ParseError: nested deeper than 100
program "p" on {0, 1} (%0: table<table<table<table<table<table<table<table<table<table<table<table<table<table<table<table<table<table<table<table<table<table<table<table<table<table<table<table<table<table<table<table<table<table<table<table<table<table<table<table<table<table<table<table<table<table<table<table<table<table<table<table<table<table<table<table<table<table<table<table<table<table<table<table<table<table<table<table<table<table<table<table<table<table<table<table<table<table<table<table<table<table<table<table<table<table<table<table<table<table<table<table<table<table<table<table<table<table<table<table<table<>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>@{0}) {
  return
}
