import type { AuditItem } from '../platform/app/contract.ts';

/** How the actor of an event signed in. */
export const signInLabels: Readonly<Record<AuditItem['signIn'], string>> = {
  token: 'a personal token',
  'team-token': 'a token of a team',
  'organization-token': 'a token of the organization',
  'service-token': 'a token of a service',
  'id-token': 'a trusted CI run',
  session: 'a browser session',
  password: 'a password',
  passkey: 'a passkey',
  provider: 'the identity provider',
  link: 'a sign-in link',
  'system-user': 'a command on the server',
  lease: 'the update itself',
  none: 'no sign-in',
};
