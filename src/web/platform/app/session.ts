import { createFlag } from '../ui/flag.ts';

const ended = createFlag(false);

/** Whether the session has ended while a draft is open: it stays until the user has signed in again. */
export const useSessionEnded = ended.use;

/** Whose page this is. */
let user: string | undefined;

/** The server accepts a session of this user. What is shown, and open, is the first one's: for another one, the page is loaded anew. */
export function noteUser(login: string): void {
  user ??= login;
  ended.set(user !== login);
  if (user !== login && !hasDraft()) location.reload();
}

/** Parts of pages that would be lost say so, such as a value that is shown only once. */
const losses = '[data-draft]';
const forms = '[role="dialog"] form';

/** Whether the user has something open: a question, a form, or something that would be lost. */
export function hasDraft(): boolean {
  return document.querySelector(`${forms}, ${losses}`) !== null;
}

/** Whether something would be lost. */
export function hasLoss(): boolean {
  return document.querySelector(losses) !== null;
}

/** A form in a dialog would be a loss as soon as something is entered there. */
export function noteInput({ target }: Event): void {
  if (target instanceof Element) target.closest(forms)?.setAttribute('data-draft', '');
}

/** Goes to the sign-in page, which leads back to the current page. An open draft stays and says what to do. */
export function signIn(): void {
  if (hasDraft()) {
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
