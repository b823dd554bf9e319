// Applies the chosen theme. The same key is in app/theme.ts.
(() => {
  try {
    const theme = localStorage.getItem('holdfast.theme');
    if (theme === 'dark' || theme === 'light') document.documentElement.dataset.theme = theme;
  } catch {
    // Storage may be off; the system's theme applies then.
  }
})();
