/** Script of the pages for people. Every page works without it. */
export const signInScript = `'use strict';
for (const form of document.querySelectorAll('form')) {
  form.addEventListener('submit', () => {
    // A second click must not do it twice.
    setTimeout(() => { for (const button of form.querySelectorAll('button')) button.disabled = true; });
  });
}
// A page that the browser kept shows buttons that were pressed.
addEventListener('pageshow', (event) => { if (event.persisted) location.reload(); });
`;
