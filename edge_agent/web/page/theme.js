// Before anything is drawn: light or dark, as chosen here or, without a choice, as the machine has it.
(() => {
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const put = () => {
    const chosen = localStorage.getItem("theme");
    document.documentElement.dataset.theme = chosen || (dark.matches ? "dark" : "light");
  };
  dark.addEventListener("change", put);
  document.addEventListener("theme", put);
  put();
})();
