import { createFlag } from '../ui/flag.ts';

const ended = createFlag(false);

/** If the session ends while a draft is open, the draft stays until the user has signed in again. */
export const useSessionEnded = ended.use;

let user: string | undefined;

/**
 * The server accepts a session of this user. Shown data and open drafts belong to the first user: for another user, the page is reloaded.
 */
export function noteUser(login: string): void {
  user ??= login;
  ended.set(user !== login);
  if (user !== login && !hasDraft()) location.reload();
}

/** Marks parts of pages that would be lost, such as a value that is shown only once. */
const losses = '[data-draft]';
const forms = '[role="dialog"] form';

/** A question, a form, or content that would be lost. */
export function hasDraft(): boolean {
  return document.querySelector(`${forms}, ${losses}`) !== null;
}

export function hasLoss(): boolean {
  return document.querySelector(losses) !== null;
}

/** A form in a dialog counts as a loss as soon as something is entered. */
export function noteInput({ target }: Event): void {
  if (target instanceof Element) target.closest(forms)?.setAttribute('data-draft', '');
}

/** The sign-in page leads back to the current page. An open draft stays and explains what to do. */
export function signIn(): void {
  if (hasDraft()) {
    ended.set(true);
    return;
  }
  const next = `${location.pathname}${location.search}`;
  location.assign(`/sign-in?next=${encodeURIComponent(next)}`);
}

/** Ends the session. Uses a form, because the server accepts it only from its own pages, and answers with the sign-in page. */
export function signOut(): void {
  const form = document.createElement('form');
  form.method = 'post';
  form.action = '/sign-out';
  document.body.append(form);
  form.submit();
}
