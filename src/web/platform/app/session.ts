import { createFlag } from '../ui/flag.ts';

const ended = createFlag(false);

/** Whether the session has ended while a form is open: what was typed into it stays until somebody has signed in again. */
export const useSessionEnded = ended.use;

/** The server knows the session, or somebody else's. */
export function noteSession(): void {
  ended.set(false);
}

/** Leaves for the sign-in page, which leads back to where somebody was. Not away from an open form: it says what to do. */
export function signIn(): void {
  if (document.querySelector('[role="dialog"] form') !== null) {
    ended.set(true);
    return;
  }
  const next = `${location.pathname}${location.search}`;
  location.assign(`/sign-in?next=${encodeURIComponent(next)}`);
}

/** Ends the session. A form, because the server accepts that from pages of its own only, and answers with the sign-in page. */
export function signOut(): void {
  const form = document.createElement('form');
  form.method = 'post';
  form.action = '/sign-out';
  document.body.append(form);
  form.submit();
}
