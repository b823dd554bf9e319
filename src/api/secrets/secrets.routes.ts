import type { FastifyReply, FastifyRequest } from 'fastify';
import { type TSchema, Type } from 'typebox';
import { apiToken, stackPath } from '../platform/http/paths.ts';
import { type BodyParts, receiveBody } from '../platform/http/request-body.ts';
import type { RouteScope } from '../platform/http/route-scope.ts';
import { sendChunks } from '../platform/http/streamed-response.ts';
import { StackParams } from '../platform/protocol/core.ts';
import { base64Chunks, type EncodedValues, readValue, readValues } from './encoded-values.ts';
import type { SecretService } from './secret-service.ts';
import {
  BatchDecryptRequest,
  BatchDecryptResponse,
  BatchEncryptRequest,
  BatchEncryptResponse,
  DecryptRequest,
  DecryptResponse,
  EncryptRequest,
  EncryptResponse,
  LogDecryptionRequest,
} from './secrets.schemas.ts';

export interface Services extends BodyParts {
  readonly secrets: SecretService;
}

const minChunkChars = 16 * 1024;

const common = { tags: ['secrets'], security: apiToken, params: StackParams };
const encrypting = {
  access: { kind: 'stack', permission: 'preview' },
  rate: 'needed',
  audit: { none: 'returns ciphertexts and changes nothing' },
  whileReadOnly: 'running updates need it',
} as const;
/** The service checks the permission: the path may be a former name. */
const decrypting = {
  access: { kind: 'stack', permission: 'decrypt', former: true },
  rate: 'needed',
  audit: 'secret.decrypt',
  whileReadOnly: 'it reads',
} as const;
const logging = {
  access: { kind: 'stack', permission: 'decrypt' },
  rate: 'needed',
  audit: 'secret.show',
  whileReadOnly: 'it records a read',
} as const;

/** Bodies are never logged. */
export function registerSecretRoutes(app: RouteScope, services: Services): void {
  encryptValue(app, services);
  decryptValue(app, services);
  encryptValues(app, services);
  decryptValues(app, services);
  logDecryptions(app, services);
}

function encryptValue(app: RouteScope, services: Services): void {
  app.post(
    `${stackPath}/encrypt`,
    {
      config: { ...encrypting, ...reading(EncryptRequest, EncryptResponse) },
      schema: { ...common, summary: 'Encrypt one value' },
    },
    async (request, reply) =>
      respondFrom(services, request, reply, async (body) => {
        const [ciphertext] = await services.secrets.encrypt(request.params, await readValue(body, 'plaintext'));
        return valueJson('ciphertext', ciphertext as Buffer);
      }),
  );
}

function decryptValue(app: RouteScope, services: Services): void {
  app.post(
    `${stackPath}/decrypt`,
    {
      config: { ...decrypting, ...reading(DecryptRequest, DecryptResponse) },
      schema: { ...common, summary: 'Decrypt one value' },
    },
    async (request, reply) =>
      respondFrom(services, request, reply, async (body) => {
        const { audit, caller, params } = request;
        const plaintexts = await services.secrets.decrypt(params, caller, await readValue(body, 'ciphertext'), audit);
        return valueJson('plaintext', plaintexts.get(0) as Buffer);
      }),
  );
}

function encryptValues(app: RouteScope, services: Services): void {
  app.post(
    `${stackPath}/batch-encrypt`,
    {
      config: { ...encrypting, ...reading(BatchEncryptRequest, BatchEncryptResponse) },
      schema: { ...common, summary: 'Encrypt values' },
    },
    async (request, reply) =>
      respondFrom(services, request, reply, async (body) =>
        ciphertextsJson(await services.secrets.encrypt(request.params, await readValues(body, 'plaintexts'))),
      ),
  );
}

function decryptValues(app: RouteScope, services: Services): void {
  app.post(
    `${stackPath}/batch-decrypt`,
    {
      config: { ...decrypting, ...reading(BatchDecryptRequest, BatchDecryptResponse) },
      schema: { ...common, summary: 'Decrypt values' },
    },
    async (request, reply) =>
      respondFrom(services, request, reply, async (body) => {
        const ciphertexts = await readValues(body, 'ciphertexts');
        const { audit, caller, params } = request;
        return plaintextsJson(ciphertexts, await services.secrets.decrypt(params, caller, ciphertexts, audit));
      }),
  );
}

function logDecryptions(app: RouteScope, { secrets }: Services): void {
  for (const log of ['log-decryption', 'log-batch-decryption']) {
    app.post(
      `${stackPath}/decrypt/${log}`,
      {
        config: logging,
        schema: {
          ...common,
          summary: 'Record that secrets were shown',
          body: LogDecryptionRequest,
          response: { 204: Type.Null() },
        },
      },
      async ({ params, body, caller, log: logger, audit }, reply) => {
        const { organization, project, stack } = params;
        logger.info({ organization, project, stack, login: caller.login }, 'secrets shown to user');
        await secrets.recordShown(params, { name: body.secretName ?? null, command: body.commandName ?? null }, audit);
        return reply.code(204).send(null);
      },
    );
  }
}

/** Holds the body's share of the memory until the last chunk of the response is produced. */
async function respondFrom(
  services: Services,
  request: FastifyRequest,
  reply: FastifyReply,
  work: (body: Buffer) => Promise<Generator<string>>,
): Promise<FastifyReply> {
  const { body, release } = await receiveBody(services, request, services.config.limits.maxControlBodyBytes);
  const response = async function* (): AsyncGenerator<string> {
    try {
      // One step of the stream for each of 100,000 short values would cost more than the values.
      let text = '';
      for (const part of await work(body)) {
        text += part;
        if (text.length < minChunkChars) continue;
        yield text;
        text = '';
      }
      yield text;
    } finally {
      release();
    }
  };
  return sendChunks(reply, response());
}

/** The route reads its body itself, within its own size limit. */
function reading(body: TSchema, response: TSchema) {
  return { body: 'payload', described: { body, responses: { 200: response } } } as const;
}

function* valueJson(name: string, value: Buffer): Generator<string> {
  yield `{"${name}":"`;
  yield* base64Chunks(value);
  yield '"}';
}

function* ciphertextsJson(ciphertexts: readonly Buffer[]): Generator<string> {
  yield '{"ciphertexts":[';
  for (const [index, ciphertext] of ciphertexts.entries()) {
    yield index === 0 ? '"' : ',"';
    yield* base64Chunks(ciphertext);
    yield '"';
  }
  yield ']}';
}

/** The keys are the request's strings: the CLI panics if one differs in a single character. Base64 needs no escaping. */
function* plaintextsJson(ciphertexts: EncodedValues, plaintexts: ReadonlyMap<number, Buffer>): Generator<string> {
  yield '{"plaintexts":{';
  let separator = '"';
  for (const [index, plaintext] of plaintexts) {
    yield separator;
    yield* ciphertexts.chunks(index);
    yield '":"';
    yield* base64Chunks(plaintext);
    separator = '","';
  }
  yield plaintexts.size > 0 ? '"}}' : '}}';
}
