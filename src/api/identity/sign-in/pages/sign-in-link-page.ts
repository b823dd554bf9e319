import { html } from '../../../platform/pages/html.ts';
import { renderPage, renderProblem } from '../../../platform/pages/page.ts';

/** The script takes the secret from the part of the address that browsers do not send. */
export function renderSignInLinkPage({ problem = null }: { readonly problem?: string | null } = {}): string {
  return renderPage(
    'Sign in once',
    html`${renderProblem(problem)}
<p>The link works once. Then add a passkey, or choose a password.</p>
<form method="post" action="/sign-in/link">
<label>Code at the end of the link <input id="sign-in-link" name="link" autocomplete="off" autocapitalize="none" spellcheck="false" required maxlength="100"></label>
<button class="main">Sign in</button>
</form>
<p><a href="/sign-in">Sign in another way</a></p>`,
  );
}
