import { randomBytes } from 'node:crypto';
import { type IncomingMessage, type RequestOptions, request as requestHttp } from 'node:http';
import { request as requestTls } from 'node:https';
import { isIP } from 'node:net';
import { connect, type DetailedPeerCertificate } from 'node:tls';
import { isLoopback } from '../../shared/platform/config/exposure.ts';
import { settingsOfEnvironment } from '../../shared/platform/config/settings-file.ts';
import { codeOf } from '../../shared/platform/errors/causes.ts';
import { onFailure } from '../../shared/platform/outgoing/failed-request.ts';
import { createProcessRepository } from '../../shared/platform/processes/process-repository.ts';
import { proofPath, proofPauseMs, proveInstallation } from '../../shared/platform/site/installation-proof.ts';
import { createSiteRepository } from '../../shared/platform/site/site-repository.ts';
import { leftOf } from './certificate-days.ts';
import { type Check, fail, type Outcome, ok, sentenceOf, warn } from './check.ts';
import type { Visit } from './visit.ts';

/**
 * All proxies must admit a body of this size. It exceeds the part of a body that a server discards, so that the server refuses it at once.
 */
const bodyBytes = 256 * 1024 * 1024;
const answerMs = 4_000;
/** Events that arrive this close together were held back, in ms. */
const heldMs = proofPauseMs / 3;

/** Checks of the path from this machine through the public URL to a server. */
export function publicUrlChecks(visit: Visit): Check[] {
  const { publicUrl } = visit.config;
  let taking: Promise<Proof> | undefined;
  const prove = (): Promise<Proof> => {
    taking ??= takeProof(publicUrl);
    return taking;
  };
  const checks: Check[] = [
    { name: 'public-url', run: () => checkInstallation(visit, prove) },
    { name: 'public-url-stream', run: () => checkStream(publicUrl, prove) },
    { name: 'public-url-bodies', run: () => checkBodies(visit, prove) },
  ];
  if (publicUrl.startsWith('https:'))
    checks.push({ name: 'public-url-certificate', run: () => checkCertificate(new URL(publicUrl)) });
  return checks;
}

interface Proof {
  readonly status: number;
  readonly nonce: string;
  readonly said: string | null;
  /** Null: two events did not arrive. */
  readonly gapMs: number | null;
}

async function checkInstallation(visit: Visit, prove: () => Promise<Proof>): Promise<Outcome> {
  const { publicUrl } = visit.config;
  const fix = "Point HOLDFAST_PUBLIC_URL, the DNS and the proxy at this installation's servers.";
  let proof: Proof;
  try {
    proof = await prove();
  } catch (error) {
    const seen = `${publicUrl} cannot be reached: ${sentenceOf(error)}`;
    if ((await isServed(visit)) === false) return warn(seen, 'Start a server: `holdfast server` or `holdfast api`.');
    if (!isLoopback(new URL(publicUrl).hostname)) return fail(seen, fix);
    // A process that serves no requests may lack this setting.
    if (!('HOLDFAST_PUBLIC_URL' in settingsOfEnvironment()))
      return warn(seen, 'Set HOLDFAST_PUBLIC_URL to the URL that people use.');
    return codeOf(error) === 'ECONNREFUSED' && portOf(publicUrl) !== visit.config.listen.port
      ? warn(seen, 'In a container, this proves nothing: open the URL on the machine around it.')
      : fail(seen, fix);
  }
  const { nonce, said, status } = proof;
  if (said === null) return fail(`${publicUrl} answers ${status}, but not as a server of this release.`, fix);
  const db = await visit.migrated();
  if (db === null) return null;
  const { installation } = await createSiteRepository(db).read();
  return said === proveInstallation(installation, nonce)
    ? ok(`${publicUrl} leads to this installation.`)
    : fail(`${publicUrl} leads to another installation.`, fix);
}

function portOf(url: string): number {
  const { port, protocol } = new URL(url);
  return Number(port || (protocol === 'https:' ? 443 : 80));
}

/** Whether a process has reported lately; null: unknown. */
async function isServed(visit: Visit): Promise<boolean | null> {
  const db = await visit.migrated();
  if (db === null) return visit.config.database.url === null ? false : null;
  const processes = await createProcessRepository(db).list(1_000);
  return processes.some(({ isLate, role }) => !isLate && role !== 'worker');
}

async function checkStream(publicUrl: string, prove: () => Promise<Proof>): Promise<Outcome> {
  let proof = await prove().catch(() => null);
  if (proof === null || proof.said === null) return null;
  // This process may have been too busy to read the first event in time.
  for (let again = 0; again < 2 && isHeld(proof); again++) proof = await takeProof(publicUrl);
  return isHeld(proof)
    ? warn(
        'A proxy holds responses back until they are complete: pages do not refresh themselves.',
        'Let the proxy pass text/event-stream unbuffered.',
      )
    : ok('Events arrive as they are sent.');
}

function isHeld({ gapMs }: Proof): boolean {
  return gapMs === null || gapMs < heldMs;
}

/** Announces a large body without a token, and sends its beginning. A server refuses it at once. */
async function checkBodies({ config }: Visit, prove: () => Promise<Proof>): Promise<Outcome> {
  const { publicUrl } = config;
  const proof = await prove().catch(() => null);
  if (proof === null || proof.said === null) return null;
  const mebibytes = bodyBytes / 1024 ** 2;
  const headers = {
    accept: 'application/vnd.pulumi+8',
    'content-type': 'application/json',
    'content-length': bodyBytes,
  };
  const path = '/api/stacks/holdfast/doctor/doctor/import';
  const answer = await send(publicUrl, path, { method: 'POST', headers }, Buffer.alloc(1_024, ' ')).catch(() => null);
  answer?.destroy();
  if (answer === null)
    return warn(
      'A proxy waits for whole bodies before it passes them on, or cuts them off.',
      'Let the proxy pass bodies on as they arrive (nginx: proxy_request_buffering off).',
    );
  if (answer.headers['x-pulumi-request-id'] === undefined)
    return fail(
      `A proxy answers ${answer.statusCode} to a body of ${mebibytes} MiB.`,
      'Let the proxy pass bodies of hundreds of MB (nginx: client_max_body_size 0).',
    );
  return ok(`Bodies of ${mebibytes} MiB pass, and early answers come back.`);
}

async function checkCertificate({ hostname, port }: URL): Promise<Outcome> {
  const host = hostname.replace(/^\[|\]$/g, '');
  const found = await new Promise<{ cert: DetailedPeerCertificate; error: Error | null }>((resolve, reject) => {
    // Reads only the certificate, and sends nothing.
    const name = isIP(host) === 0 ? { servername: host } : {};
    const socket = connect({ host, port: Number(port || 443), ...name, rejectUnauthorized: false }, () => {
      const cert = socket.getPeerCertificate(true);
      const error = socket.authorized ? null : new Error(String(socket.authorizationError));
      socket.destroy();
      resolve({ cert, error });
    });
    socket.setTimeout(answerMs, () => socket.destroy(new Error(`no answer within ${answerMs / 1000} s`)));
    socket.on('error', reject);
  }).catch(() => null);
  // The check of the URL itself reports the fault.
  if (found === null) return null;
  const left = leftOf(new Date(found.cert.valid_to), 'The certificate');
  if (left?.status === 'fail' || found.error === null) return left;
  return fail(
    `The certificate is not trusted here: ${found.error.message}`,
    'Let the server or proxy send a certificate for this name with its intermediates. Make its CA known to clients, and here in HOLDFAST_CA_FILE.',
  );
}

async function takeProof(publicUrl: string): Promise<Proof> {
  const nonce = randomBytes(16).toString('hex');
  const response = await send(publicUrl, `${proofPath}?nonce=${nonce}`, { method: 'GET' });
  const status = response.statusCode ?? 0;
  const times: number[] = [];
  let text = '';
  response.setEncoding('utf8');
  for await (const chunk of response) {
    text += chunk;
    for (let event = times.length; event < text.split('\n\n').length - 1; event++) times.push(performance.now());
    // Another program may answer with anything.
    if (text.length > 65_536) break;
  }
  const said = status === 200 ? (/^data: ([0-9a-f]{64})\n\n/.exec(text)?.[1] ?? null) : null;
  const [first, second] = times;
  return { status, nonce, said, gapMs: first === undefined || second === undefined ? null : second - first };
}

/** Sends a request without a secret. Accepts any certificate, because another check examines it. */
function send(publicUrl: string, path: string, options: RequestOptions, body?: Buffer): Promise<IncomingMessage> {
  const url = `${publicUrl.replace(/\/+$/, '')}${path}`;
  const isTls = url.startsWith('https:');
  return new Promise((resolve, reject) => {
    const all = { ...options, agent: false, ...(isTls ? { rejectUnauthorized: false } : {}) };
    const request = (isTls ? requestTls : requestHttp)(url, all, resolve);
    request.setTimeout(answerMs, () => request.destroy(new Error(`no answer within ${answerMs / 1000} s`)));
    onFailure(request, reject);
    if (body === undefined) request.end();
    else request.write(body);
  });
}
