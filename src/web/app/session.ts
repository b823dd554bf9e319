/** Leaves for the sign-in page, which leads back to where somebody was. */
export function signIn(): void {
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
