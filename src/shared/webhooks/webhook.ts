import { InvalidRequestError } from '../platform/errors/errors.ts';
import { isEventGroup, isEventName } from './webhook-events.ts';

/** `github_status` and `gitlab_status` set the status of commits. The URL is that of the host's API, the secret a token. */
const webhookFormats = ['raw', 'slack', 'ms_teams', 'github_status', 'gitlab_status'] as const;

const maxUrlChars = 2_000;
const maxNameChars = 100;
const maxSecretChars = 500;
const maxSelected = 100;

/** Null stands for no filter, or no secret. */
export interface WebhookDefinition {
  readonly displayName: string;
  readonly url: string;
  readonly format: string;
  readonly events: readonly string[];
  readonly groups: readonly string[];
}

export function setsCommitStatus(format: string): boolean {
  return format === 'github_status' || format === 'gitlab_status';
}

/** Throws InvalidRequestError. Each call decides whether its URL may be called. */
export function checkWebhook({ displayName, events, format, groups, url }: WebhookDefinition): void {
  if (
    displayName === '' ||
    displayName.length > maxNameChars ||
    /\p{Cc}/u.test(displayName) ||
    !displayName.isWellFormed()
  )
    throw new InvalidRequestError(`The name of a webhook has 1 to ${maxNameChars} characters`);
  if (url.length > maxUrlChars || !URL.canParse(url) || !/^https?:\/\//i.test(url))
    throw new InvalidRequestError('payloadUrl is not a URL that begins with https://');
  const parsed = new URL(url);
  if (parsed.username !== '' || parsed.password !== '')
    throw new InvalidRequestError('payloadUrl must not contain a user name or a password');
  if (!(webhookFormats as readonly string[]).includes(format))
    throw new InvalidRequestError(`The format must be one of ${webhookFormats.join(', ')}`);
  if (events.length > maxSelected || groups.length > maxSelected)
    throw new InvalidRequestError(`At most ${maxSelected} events can be selected`);
  for (const event of events)
    if (!isEventName(event)) throw new InvalidRequestError(`There is no event ${JSON.stringify(event.slice(0, 60))}`);
  for (const group of groups)
    if (!isEventGroup(group))
      throw new InvalidRequestError(`There is no group of events ${JSON.stringify(group.slice(0, 60))}`);
}

/** Throws InvalidRequestError. */
export function checkSecret(secret: string): void {
  if (secret.length > maxSecretChars || !/^[\x20-\x7e]+$/.test(secret))
    throw new InvalidRequestError(`A secret has at most ${maxSecretChars} characters, in ASCII`);
  if (secret.startsWith('whsec_') && !/^[A-Za-z0-9+/]{22,}={0,2}$/.test(secret.slice(6)))
    throw new InvalidRequestError('After whsec_, a secret is at least 16 bytes in Base64');
}

/** Scheme, host and port may be logged. The path can be a secret. */
export function urlOriginOf(url: string): string {
  return URL.canParse(url) ? new URL(url).origin : '';
}
