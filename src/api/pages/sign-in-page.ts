import { html } from './html.ts';
import { renderPage, renderProblem } from './page.ts';

/** The page on which people sign in. `next`: where they go afterwards. */
export function renderSignInPage({
  login = '',
  next,
  problem = null,
}: {
  readonly next: string;
  readonly login?: string;
  readonly problem?: string | null;
}): string {
  return renderPage(
    'Sign in',
    html`${renderProblem(problem)}
<form method="post" action="/sign-in">
<input type="hidden" name="next" value="${next}">
<label>Login <input name="login" value="${login}" autocomplete="username" autocapitalize="none" spellcheck="false" required maxlength="100"></label>
<label>Password <input name="password" type="password" autocomplete="current-password" required maxlength="512"></label>
<button class="main">Sign in</button>
</form>`,
  );
}
