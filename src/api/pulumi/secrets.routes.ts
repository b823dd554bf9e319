import { Type } from 'typebox';
import { InvalidRequestError } from '../../shared/platform/errors/errors.ts';
import { AnyObject, StackParams } from '../../shared/protocol/core.ts';
import {
  BatchDecryptRequest,
  BatchDecryptResponse,
  BatchEncryptRequest,
  BatchEncryptResponse,
  DecryptRequest,
  DecryptResponse,
  EncryptRequest,
  EncryptResponse,
} from '../../shared/protocol/secrets.ts';
import type { ApiContext } from '../api-context.ts';
import type { RouteScope } from '../route-scope.ts';
import { SecretService } from '../secrets/secret-service.ts';
import { apiToken, stackPath } from './paths.ts';

const tags = ['secrets'];
const member = { access: { kind: 'organization', role: 'member' } } as const;
/** `pulumi stack` and `stack output` decrypt: who may read a stack may read its secrets. */
const viewer = { access: { kind: 'organization', role: 'viewer' } } as const;

/** Encryption of stack secrets. Bodies are never logged. */
export function registerSecretRoutes(app: RouteScope, context: ApiContext): void {
  const secrets = new SecretService(context);
  const common = { tags, security: apiToken, params: StackParams };

  app.post(
    `${stackPath}/encrypt`,
    {
      config: member,
      schema: { ...common, summary: 'Encrypt one value', body: EncryptRequest, response: { 200: EncryptResponse } },
    },
    async ({ params, body }) => {
      const [ciphertext] = await secrets.encrypt(params, [decodeBase64('plaintext', body.plaintext)]);
      return { ciphertext: (ciphertext as Buffer).toString('base64') };
    },
  );

  app.post(
    `${stackPath}/decrypt`,
    {
      config: viewer,
      schema: { ...common, summary: 'Decrypt one value', body: DecryptRequest, response: { 200: DecryptResponse } },
    },
    async ({ params, body }) => {
      const [plaintext] = await secrets.decrypt(params, [decodeBase64('ciphertext', body.ciphertext)]);
      return { plaintext: (plaintext as Buffer).toString('base64') };
    },
  );

  app.post(
    `${stackPath}/batch-encrypt`,
    {
      config: member,
      schema: {
        ...common,
        summary: 'Encrypt values',
        body: BatchEncryptRequest,
        response: { 200: BatchEncryptResponse },
      },
    },
    async ({ params, body }) => {
      const plaintexts = body.plaintexts.map((text, index) => decodeBase64(`plaintexts[${index}]`, text));
      const ciphertexts = await secrets.encrypt(params, plaintexts);
      return { ciphertexts: ciphertexts.map((ciphertext) => ciphertext.toString('base64')) };
    },
  );

  app.post(
    `${stackPath}/batch-decrypt`,
    {
      config: viewer,
      schema: {
        ...common,
        summary: 'Decrypt values',
        body: BatchDecryptRequest,
        response: { 200: BatchDecryptResponse },
      },
    },
    async ({ params, body }) => {
      // Answered under the request's own strings: the CLI panics when a key differs in one character.
      const texts = [...new Set(body.ciphertexts)];
      const plaintexts = await secrets.decrypt(
        params,
        texts.map((text, index) => decodeBase64(`ciphertexts[${index}]`, text)),
      );
      return {
        plaintexts: Object.fromEntries(
          texts.map((text, index) => [text, (plaintexts[index] as Buffer).toString('base64')]),
        ),
      };
    },
  );

  for (const log of ['log-decryption', 'log-batch-decryption']) {
    app.post(
      `${stackPath}/decrypt/${log}`,
      {
        config: viewer,
        schema: { ...common, summary: 'Note that secrets were shown', body: AnyObject, response: { 204: Type.Null() } },
      },
      async ({ params, caller, log: logger }, reply) => {
        logger.info(
          { organization: params.organization, project: params.project, stack: params.stack, login: caller.login },
          'secrets shown to user',
        );
        return reply.code(204).send(null);
      },
    );
  }
}

// No group is repeated: the engine's stack would not hold the steps of a text of many MB.
const base64Pattern = /^[A-Za-z0-9+/]*={0,2}$/;

function decodeBase64(name: string, text: string): Buffer {
  if (text.length % 4 !== 0 || !base64Pattern.test(text))
    throw new InvalidRequestError(`${name} is not padded standard base64`);
  return Buffer.from(text, 'base64');
}
