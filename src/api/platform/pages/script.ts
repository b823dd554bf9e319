/** Every page works without the script, except for passkeys. */
export const signInScript = `'use strict';
try {
  // The theme that was chosen in the web UI (src/web/platform/app/theme.ts).
  const theme = localStorage.getItem('holdfast.theme');
  if (theme === 'dark' || theme === 'light') document.documentElement.dataset.theme = theme;
} catch {}
const link = document.getElementById('sign-in-link');
if (link && location.hash.length > 1) {
  link.value = location.hash.slice(1);
  link.parentElement.hidden = true;
  // Neither the history nor a bookmark should have it.
  history.replaceState(null, '', location.pathname);
}
for (const form of document.querySelectorAll('form')) {
  form.addEventListener('submit', () => {
    // A second click must not do it twice.
    setTimeout(() => { for (const button of form.querySelectorAll('button')) button.disabled = true; });
  });
}
// A page restored from the browser's cache shows disabled buttons.
addEventListener('pageshow', (event) => { if (event.persisted) location.reload(); });

async function post(path, body) {
  const response = await fetch(path, {
    method: 'POST',
    headers: { accept: 'application/json', ...(body ? { 'content-type': 'application/json' } : {}) },
    body: body ? JSON.stringify(body) : undefined,
  }).catch(() => null);
  // Of a proxy, if it is no JSON.
  const answer = await response?.json().catch(() => null);
  if (!answer) throw new Error('The server does not answer. Try again.');
  if (!response.ok) throw new Error(answer.message);
  return answer;
}

async function signIn({ dataset }) {
  const publicKey = PublicKeyCredential.parseRequestOptionsFromJSON(await post('/sign-in/passkey/options'));
  const response = (await navigator.credentials.get({ publicKey })).toJSON();
  return post('/sign-in/passkey', { response, next: dataset.next });
}

async function add() {
  const publicKey = PublicKeyCredential.parseCreationOptionsFromJSON(await post('/account/passkeys/options'));
  const response = (await navigator.credentials.create({ publicKey })).toJSON();
  const name = document.querySelector('#passkey-name').value;
  return post('/account/passkeys', { response, name });
}

const problem = document.querySelector('#passkey-problem');
for (const [id, work] of [['#passkey-sign-in', signIn], ['#passkey-add', add]]) {
  const button = document.querySelector(id);
  if (!button || !window.PublicKeyCredential || !PublicKeyCredential.parseRequestOptionsFromJSON) continue;
  button.closest('[hidden]').hidden = false;
  button.addEventListener('click', async () => {
    button.disabled = true;
    problem.hidden = true;
    try {
      location.assign((await work(button)).next);
    } catch (error) {
      problem.textContent = error.name === 'NotAllowedError' ? 'The browser did not use a passkey' : error.message;
      problem.hidden = false;
      button.disabled = false;
    }
  });
}
`;
