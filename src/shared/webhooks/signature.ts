import { createHmac } from 'node:crypto';

/**
 * Headers by which a receiver recognizes the sender: those of Standard Webhooks and the vendor's. A secret that begins with `whsec_`
 * is Base64, as the libraries of Standard Webhooks expect; of any other the text itself is the key.
 */
export function signatureHeaders(
  secret: string,
  { body, id, seconds }: { readonly id: string; readonly seconds: number; readonly body: string },
): Readonly<Record<string, string>> {
  const key = secret.startsWith('whsec_') ? Buffer.from(secret.slice(6), 'base64') : Buffer.from(secret);
  const standard = createHmac('sha256', key).update(`${id}.${seconds}.${body}`).digest('base64');
  return {
    'webhook-signature': `v1,${standard}`,
    'pulumi-webhook-signature': createHmac('sha256', Buffer.from(secret)).update(body).digest('hex'),
  };
}
