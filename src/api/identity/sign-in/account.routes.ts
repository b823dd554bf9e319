import { Type } from 'typebox';
import type { Config } from '../../../shared/platform/config/config.ts';
import type { Session } from '../../platform/http/request.ts';
import type { RouteScope } from '../../platform/http/route-scope.ts';
import type { InvitationService } from '../invitation-service.ts';
import type { MemberService } from '../member-service.ts';
import { personOfSession } from '../person.ts';
import { clearSessionCookie, setSessionCookie, visitOf } from './cookies.ts';
import { renderAccountPage } from './pages/account-page.ts';
import type { PasskeyService } from './passkey-service.ts';
import type { PasswordService } from './password-service.ts';
import { describedForm, describedPage, pageTags, sendPage, sessionCookie } from './send-page.ts';
import type { SessionService } from './session-service.ts';

export interface Services {
  readonly invitations: InvitationService;
  readonly members: MemberService;
  readonly config: Config;
  readonly passkeys: PasskeyService;
  readonly passwords: PasswordService;
  readonly sessions: SessionService;
}

/** `problem`: why one of the page's forms was refused. */
export async function accountPageOf(
  { invitations, members, passkeys, passwords, sessions }: Omit<Services, 'config'>,
  session: Session,
  problem: string | null = null,
): Promise<string> {
  return renderAccountPage({
    session,
    problem,
    sessions: await sessions.list(session),
    hasPassword: await passwords.hasPassword(session),
    invitations: await invitations.listOf(session),
    memberships: await members.listOf(session),
    passkeys: passkeys.isAvailable ? await passkeys.list(session) : null,
  });
}

const form = { access: { kind: 'session' }, rate: 'held', body: 'form', anyAccept: true } as const;
const described = { tags: pageTags, security: sessionCookie, consumes: ['application/x-www-form-urlencoded'] };

export function registerAccountRoutes(app: RouteScope, services: Services): void {
  const { config, passwords, sessions } = services;
  app.get(
    '/account',
    {
      config: { access: { kind: 'session' }, rate: 'held', anyAccept: true, described: describedPage },
      schema: { tags: pageTags, summary: 'Show the user’s sessions', security: sessionCookie },
    },
    async ({ session }, reply) => sendPage(reply, await accountPageOf(services, session)),
  );

  app.post(
    '/account/end-session',
    {
      config: {
        ...form,
        audit: 'session.end',
        whileReadOnly: 'readers sign out',
        described: { ...describedForm, errorStatuses: [403, 404, 415] },
      },
      schema: {
        ...described,
        summary: 'End one of the user’s sessions, or all others',
        body: Type.Object({ session: Type.String({ description: 'The id of a session, or `others`' }) }),
      },
    },
    async (request, reply) => {
      if (request.body.session === 'others') await sessions.endOthers(request.session, request.audit);
      else await sessions.end(request.session, request.body.session, request.audit);
      return reply.redirect('/account', 303);
    },
  );

  app.post(
    '/account/sign-out-everywhere',
    {
      config: {
        access: { kind: 'session' },
        rate: 'held',
        anyAccept: true,
        audit: 'session.end',
        whileReadOnly: 'readers sign out',
        described: describedForm,
      },
      schema: { tags: pageTags, summary: 'End all of the user’s sessions', security: sessionCookie },
    },
    async (request, reply) => {
      await sessions.endAll(request.session, request.audit);
      clearSessionCookie(reply, config);
      return reply.redirect('/sign-in', 303);
    },
  );

  app.post(
    '/account/password',
    {
      config: { ...form, audit: 'password.set', described: { ...describedForm, errorStatuses: [403, 415, 429] } },
      schema: {
        ...described,
        summary: 'Set or change the user’s password, which ends all other sessions',
        body: Type.Object({
          /** Missing if the user sets the first password in a session that a sign-in link began. */
          present: Type.Optional(Type.String({ maxLength: 2_000 })),
          next: Type.String({ maxLength: 2_000 }),
        }),
      },
    },
    async (request, reply) => {
      const visit = visitOf(request, config);
      const { next, present } = request.body;
      const cookies =
        present === undefined
          ? await passwords.setFirst(request.session, next, visit, request.audit)
          : await passwords.change(request.session, { present, next }, visit, request.audit);
      setSessionCookie(reply, config, cookies);
      return reply.redirect(present === undefined ? '/' : '/account', 303);
    },
  );

  registerMembershipForms(app, services);
}

const OrganizationForm = Type.Object({ organization: Type.String({ maxLength: 200 }) });

function registerMembershipForms(app: RouteScope, { invitations, members, sessions }: Services): void {
  const errors = { ...describedForm, errorStatuses: [403, 404, 415] };
  app.post(
    '/account/invitations/accept',
    {
      config: { ...form, audit: 'member.accept', described: errors },
      schema: { ...described, summary: 'Accept an invitation', body: OrganizationForm },
    },
    async ({ audit, body, session }, reply) => {
      await invitations.accept(personOfSession(session, sessions), body.organization, audit);
      return reply.redirect('/account', 303);
    },
  );
  app.post(
    '/account/invitations/decline',
    {
      config: { ...form, audit: 'member.decline', described: errors },
      schema: { ...described, summary: 'Decline an invitation', body: OrganizationForm },
    },
    async ({ audit, body, session }, reply) => {
      await invitations.decline(personOfSession(session, sessions), body.organization, audit);
      return reply.redirect('/account', 303);
    },
  );
  app.post(
    '/account/leave',
    {
      config: {
        ...form,
        audit: 'member.leave',
        described: { ...describedForm, errorStatuses: [403, 404, 409, 415] },
      },
      schema: { ...described, summary: 'Leave an organization', body: OrganizationForm },
    },
    async ({ audit, body, session }, reply) => {
      await members.leave(personOfSession(session, sessions), body.organization, audit);
      return reply.redirect('/account', 303);
    },
  );
}
