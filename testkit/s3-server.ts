import { type S3Access, s3Request } from './s3-request.ts';
import { findFreePort, type ServerHandle, startOnFreePort, startServer } from './server-process.ts';
import { ensureToolchain } from './toolchain/toolchain.ts';

/** The S3 servers that tests can run against. */
export type S3ServerKind = 'minio' | 'versitygw';

/** A running S3 server on loopback; path-style addressing. */
export interface S3Server extends ServerHandle, S3Access {
  kind: S3ServerKind;
  createBucket(name: string): Promise<void>;
}

const credentials = { accessKeyId: 'holdfast-e2e', secretAccessKey: 'holdfast-e2e-secret', region: 'us-east-1' };

/** Starts MinIO or versitygw with an empty data directory under `parentDir` or the system's temporary directory. */
export async function startS3Server(kind: S3ServerKind, parentDir?: string): Promise<S3Server> {
  const file = (await ensureToolchain({ only: [kind] }))[kind];
  return startOnFreePort(async (port) => {
    const access: S3Access = { endpoint: `http://127.0.0.1:${port}`, ...credentials };
    const command = kind === 'minio' ? await minioCommand(port) : versitygwCommand(port);
    const server = await startServer({
      name: kind,
      file,
      ...command,
      ...(parentDir === undefined ? {} : { parentDir }),
      // Listing the buckets shows that authentication and the storage work.
      isReady: async () => (await s3Request(access, 'GET', '/')).ok,
    });
    const createBucket = async (name: string): Promise<void> => {
      const response = await s3Request(access, 'PUT', `/${name}`);
      if (!response.ok) throw new Error(`bucket ${name}: ${response.status} ${await response.text()}`);
    };
    return { kind, ...access, ...server, createBucket };
  });
}

interface ServerCommand {
  args(dataDir: string): readonly string[];
  env: Record<string, string>;
}

async function minioCommand(port: number): Promise<ServerCommand> {
  const consolePort = await findFreePort();
  return {
    args: (dataDir) => [
      'server',
      '--quiet',
      ...['--address', `127.0.0.1:${port}`],
      ...['--console-address', `127.0.0.1:${consolePort}`],
      dataDir,
    ],
    env: {
      MINIO_ROOT_USER: credentials.accessKeyId,
      MINIO_ROOT_PASSWORD: credentials.secretAccessKey,
      MINIO_BROWSER: 'off',
      MINIO_UPDATE: 'off',
    },
  };
}

function versitygwCommand(port: number): ServerCommand {
  const { accessKeyId, secretAccessKey, region } = credentials;
  return {
    args: (dataDir) => ['--listen', `127.0.0.1:${port}`, '--region', region, '--quiet', dataDir],
    env: { ROOT_ACCESS_KEY: accessKeyId, ROOT_SECRET_KEY: secretAccessKey },
  };
}
