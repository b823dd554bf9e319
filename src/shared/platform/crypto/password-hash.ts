import { argon2, randomBytes, timingSafeEqual } from 'node:crypto';
import PQueue from 'p-queue';
import { UnavailableError } from '../errors/errors.ts';

/** The minimum that OWASP recommends: 19 MiB, two passes, one lane. Memory is in KiB. */
const current = { memory: 19_456, passes: 2, parallelism: 1 } as const;
const saltBytes = 16;
const tagBytes = 32;

/** Each takes 19 MiB and a thread of the pool that files and DNS also need. */
const atOnce = 2;
const maxWaiting = 50;
/** Known browsers have priority, and their own share of the queue. */
const maxWaitingKnown = 100;
const queue = new PQueue({ concurrency: atOnce });

interface Parameters {
  readonly memory: number;
  readonly passes: number;
  readonly parallelism: number;
}

/** Returns a PHC string. Throws UnavailableError if too many hashes wait. */
export async function hashPassword(password: string): Promise<string> {
  const salt = randomBytes(saltBytes);
  const tag = await derive(password, salt, current, 'known');
  const { memory, parallelism, passes } = current;
  return `$argon2id$v=19$m=${memory},t=${passes},p=${parallelism}$${toBase64(salt)}$${toBase64(tag)}`;
}

const phcPattern =
  /^\$argon2id\$v=19\$m=(\d{1,7}),t=(\d{1,2}),p=(\d{1,2})\$([A-Za-z0-9+/]{22,86})\$([A-Za-z0-9+/]{43})$/;
/** Compared if there is no password, so that a refusal takes the same time. No password has this tag. */
const nobodySalt = randomBytes(saltBytes);
const nobodyTag = randomBytes(tagBytes);

/** A null hash, i.e. no password, takes the same time. Throws UnavailableError. */
export async function verifyPassword(
  password: string,
  stored: string | null,
  asker: 'known' | 'anybody' = 'anybody',
): Promise<boolean> {
  const [, memory, passes, parallelism, salt = '', tag = ''] = phcPattern.exec(stored ?? '') ?? [];
  const isKnown = memory !== undefined;
  const parameters = isKnown
    ? { memory: Number(memory), passes: Number(passes), parallelism: Number(parallelism) }
    : current;
  const expected = isKnown ? Buffer.from(tag, 'base64') : nobodyTag;
  const derived = await derive(password, isKnown ? Buffer.from(salt, 'base64') : nobodySalt, parameters, asker);
  return timingSafeEqual(derived, expected) && isKnown;
}

async function derive(
  password: string,
  salt: Buffer,
  parameters: Parameters,
  asker: 'known' | 'anybody',
): Promise<Buffer> {
  const isKnown = asker === 'known';
  if (queue.size >= (isKnown ? maxWaitingKnown : maxWaiting))
    throw new UnavailableError('Too many people are signing in at once; please retry');
  return queue.add(
    () =>
      new Promise<Buffer>((resolve, reject) => {
        // Typed characters may be composed in different ways.
        const message = Buffer.from(password.normalize('NFKC'), 'utf8');
        const options = { message, nonce: salt, tagLength: tagBytes, ...parameters };
        argon2('argon2id', options, (error, tag) => (error ? reject(error) : resolve(tag)));
      }),
    { priority: isKnown ? 1 : 0 },
  );
}

function toBase64(bytes: Buffer): string {
  return bytes.toString('base64').replace(/=+$/, '');
}
