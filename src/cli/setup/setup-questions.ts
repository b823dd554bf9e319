import { createInterface } from 'node:readline/promises';
import { Writable } from 'node:stream';
import { areLoopback, isLoopback } from '../../shared/platform/config/exposure.ts';
import { trustedProxiesOf } from '../../shared/platform/config/http-server-config.ts';
import { secretSettings } from '../../shared/platform/config/settings.ts';
import type { GivenSettings } from '../../shared/platform/config/settings-file.ts';
import { type SetupAnswers, settingFrom, withChanges } from './setup-answers.ts';

/** Asks a person at a terminal. */
export interface Questions {
  /**
   * Returns the answer, or `suggested` for an empty one. The suggestion is shown unless it is `secret`; the typed text is shown unless it
   * is `hidden`.
   */
  ask(question: string, suggested: string, options?: { secret?: boolean; hidden?: boolean }): Promise<string>;
  close(): void;
}

/** Opens questions at the terminal of this process. An end of the input, such as Ctrl-D, ends the process. */
export function openQuestions(): Questions {
  let isHidden = false;
  const output = new Writable({
    write: (chunk, _encoding, done) => {
      if (!isHidden) process.stdout.write(chunk);
      done();
    },
  });
  const lines = createInterface({ input: process.stdin, output, terminal: true });
  const onEnd = (): never => process.exit(1);
  lines.once('close', onEnd);
  return {
    ask: async (question, suggested, { hidden = false, secret = false } = {}) => {
      const prompt = `${question}${suggested === '' ? '' : ` [${secret ? 'as it is' : suggested}]`}: `;
      if (hidden) process.stdout.write(prompt);
      isHidden = hidden;
      const answer = (await lines.question(hidden ? '' : prompt)).trim();
      isHidden = false;
      if (hidden) process.stdout.write('\n');
      return answer === '' ? suggested : answer;
    },
    close: () => {
      lines.off('close', onEnd);
      lines.close();
    },
  };
}

const ways = { alone: '1', proxy: '2', files: '3' } as const;

/** Asks for settings that options and environment do not contain. `known` are the settings so far, `fixed` the given ones. */
export async function askForSettings(
  questions: Questions,
  known: SetupAnswers,
  fixed: ReadonlySet<string>,
): Promise<SetupAnswers> {
  let { settings } = known;
  const set = (changes: GivenSettings): void => {
    settings = withChanges(settings, changes);
  };
  const askFor = async (name: string, question: string, suggested = ''): Promise<void> => {
    if (fixed.has(name)) return;
    const hidden = name === 'AWS_SECRET_ACCESS_KEY';
    const secret = settings[name] !== undefined && (hidden || (secretSettings as readonly string[]).includes(name));
    set({ [name]: settingFrom(name, await questions.ask(question, settings[name] ?? suggested, { hidden, secret })) });
  };
  await askFor('HOLDFAST_DATABASE_URL', 'Postgres, as postgres://user:password@host/name, or "embedded"', 'embedded');
  await askFor('HOLDFAST_S3_BUCKET', 'S3 bucket for large states, or "none" for files in the data directory', 'none');
  if (settings['HOLDFAST_S3_BUCKET'] !== undefined) {
    await askFor('HOLDFAST_S3_ENDPOINT', 'URL of the S3 server (empty: AWS)');
    await askFor('HOLDFAST_S3_REGION', 'Region', 'us-east-1');
    await askFor('AWS_ACCESS_KEY_ID', 'Access key id (empty: the role of this machine)');
    if (settings['AWS_ACCESS_KEY_ID'] !== undefined) await askFor('AWS_SECRET_ACCESS_KEY', 'Secret access key');
  }
  const isChosen = ['HOLDFAST_LISTEN', 'HOLDFAST_TRUSTED_PROXIES', 'HOLDFAST_TLS_CERT_FILE'].some((each) =>
    fixed.has(each),
  );
  if (!isChosen) await askForAccess(questions, settings, set, askFor);
  if (settings['HOLDFAST_DATABASE_URL'] === undefined) return { ...known, settings };
  return {
    settings,
    organization: await questions.ask('First organization', known.organization),
    admin: await questions.ask('Login of its first admin', known.admin ?? 'admin'),
  };
}

/** Asks how users reach the service, and where its TLS ends. */
async function askForAccess(
  questions: Questions,
  settings: GivenSettings,
  set: (changes: GivenSettings) => void,
  askFor: (name: string, question: string, suggested?: string) => Promise<void>,
): Promise<void> {
  const listen = settings['HOLDFAST_LISTEN'];
  const isOpen = listen !== undefined && !isLoopback(listen.slice(0, listen.lastIndexOf(':')));
  const present = settings['HOLDFAST_TLS_CERT_FILE']
    ? ways.files
    : settings['HOLDFAST_TRUSTED_PROXIES'] || isOpen
      ? ways.proxy
      : ways.alone;
  const way = await questions.ask(
    'Who reaches it?\n  1  only this machine\n  2  others, through a proxy on this machine that terminates TLS\n  3  others, directly, with certificate files\nChoose',
    present,
  );
  if (way === ways.alone) {
    set({ HOLDFAST_LISTEN: '', HOLDFAST_PUBLIC_URL: '', HOLDFAST_TRUSTED_PROXIES: '' });
    set({ HOLDFAST_TLS_CERT_FILE: '', HOLDFAST_TLS_KEY_FILE: '' });
    return;
  }
  await askFor('HOLDFAST_PUBLIC_URL', 'URL under which people reach it, such as https://pulumi.example.com');
  if (way === ways.proxy) {
    const HOLDFAST_TRUSTED_PROXIES = settings['HOLDFAST_TRUSTED_PROXIES'] ?? '127.0.0.1,::1';
    set({ HOLDFAST_TRUSTED_PROXIES });
    // The proxy could not listen there, and others would reach the service without it.
    if (isOpen && areLoopback(trustedProxiesOf({ HOLDFAST_TRUSTED_PROXIES }))) set({ HOLDFAST_LISTEN: '' });
    set({ HOLDFAST_TLS_CERT_FILE: '', HOLDFAST_TLS_KEY_FILE: '' });
    return;
  }
  set({ HOLDFAST_TRUSTED_PROXIES: '' });
  await askFor('HOLDFAST_LISTEN', 'Address and port to listen on', '0.0.0.0:443');
  await askFor('HOLDFAST_TLS_CERT_FILE', 'File with the certificate and its intermediates');
  await askFor('HOLDFAST_TLS_KEY_FILE', 'File with its private key');
}
