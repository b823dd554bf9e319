import { html } from '../../../platform/pages/html.ts';
import { renderPage, renderProblem } from '../../../platform/pages/page.ts';

/** Screen readers say the problem together with the field to correct. */
const described = html` aria-describedby="problem" autofocus`;

/** `next`: the path after the sign-in. */
export function renderSignInPage({
  login = '',
  next,
  problem = null,
  present = null,
  hasPasskeys,
  provider,
}: {
  readonly next: string;
  readonly login?: string;
  readonly problem?: string | null;
  /** Name of the identity provider; null: there is none. */
  /** Login of the signed-in user. */
  readonly present?: string | null;
  readonly hasPasskeys: boolean;
  readonly provider: string | null;
}): string {
  return renderPage(
    'Sign in',
    html`<div id="problem">${renderProblem(problem)}</div>
${present === null ? null : html`<p>You are signed in as <strong>${present}</strong>. <a href="${next}">Continue</a></p>`}
${provider === null ? null : html`<a class="button" href="/sign-in/provider?next=${encodeURIComponent(next)}">Sign in with ${provider}</a>`}
<form method="post" action="/sign-in">
<input type="hidden" name="next" value="${next}">
<label>Login <input name="login" value="${login}" autocomplete="username" autocapitalize="none" spellcheck="false" required maxlength="100"></label>
<label>Password <input name="password" type="password" autocomplete="current-password" required maxlength="512"${problem === null ? null : described}></label>
<button class="main">Sign in</button>
</form>
${hasPasskeys ? html`<div hidden><button id="passkey-sign-in" type="button" data-next="${next}">Sign in with a passkey</button></div><p id="passkey-problem" class="problem" role="alert" hidden></p>` : null}`,
    problem === null ? 'Sign in' : 'Not signed in',
  );
}
