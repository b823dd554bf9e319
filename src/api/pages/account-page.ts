import type { Session } from '../request.ts';
import type { ListedSessionRow } from '../sign-in/session-service.ts';
import { html, type Markup } from './html.ts';
import { renderPage, renderProblem } from './page.ts';

/** What the account page shows. */
export interface AccountView {
  readonly session: Session;
  readonly sessions: readonly ListedSessionRow[];
  readonly hasPassword: boolean;
  readonly problem?: string | null;
}

/** The own sessions, and the change of the password. */
export function renderAccountPage({ hasPassword, problem = null, session, sessions }: AccountView): string {
  return renderPage(
    'Your account',
    html`${renderProblem(problem)}
<p>You are signed in as <strong>${session.login}</strong>.</p>
<form method="post" action="/sign-out"><button>Sign out</button></form>
<h2>Where you are signed in</h2>
<ul>${sessions.map((each) => renderSession(each, each.id === session.id))}</ul>
<form method="post" action="/account/sign-out-everywhere"><button>Sign out everywhere</button></form>
<p class="quiet">This does not end access tokens, such as that of the CLI.</p>
${hasPassword ? renderPasswordForm() : null}`,
  );
}

function renderSession({ address, id, lastSeenAt, method, userAgent }: ListedSessionRow, isThis: boolean): Markup {
  return html`<li><span>${userAgent || 'unknown browser'}<br><span class="quiet">${address}, by ${method}, last used <time>${lastSeenAt.toISOString().slice(0, 16).replace('T', ' ')}</time> UTC</span></span>
${isThis ? html`<span class="quiet">this browser</span>` : html`<form method="post" action="/account/end-session"><input type="hidden" name="session" value="${id}"><button class="small">End</button></form>`}</li>`;
}

function renderPasswordForm(): Markup {
  return html`<h2>Change the password</h2>
<form method="post" action="/account/password">
<label>Present password <input name="present" type="password" autocomplete="current-password" required maxlength="512"></label>
<label>New password <input name="next" type="password" autocomplete="new-password" required minlength="12" maxlength="256"></label>
<button>Change the password</button>
<p class="quiet">Ends all other sessions.</p>
</form>`;
}
