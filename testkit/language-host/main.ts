import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setInterval } from 'node:timers';
import { serveGrpc } from './grpc-server.ts';
import { runProgram } from './program.ts';
import { encode, fieldOf } from './protobuf.ts';

/**
 * A language host of the CLI for policy packs and programs of the tests: `policy.json` in the pack's directory names a type of resource
 * that is not allowed; for programs, see program.ts. Implements the methods of pulumirpc.LanguageRuntime and pulumirpc.Analyzer that the
 * CLI calls.
 */
interface Pack {
  readonly name: string;
  readonly version: string;
  readonly policy: string;
  readonly forbiddenType: string;
}

const mandatory = 1;
const resourcePolicy = 1;

const parent = process.ppid;
// Tests often kill the CLI.
setInterval(() => process.ppid === parent || process.exit(1), 200).unref();

console.log(
  await serveGrpc({
    GetPluginInfo: () => [encode([[1, '1.0.0']])],
    InstallDependencies: () => [],
    GetRequiredPackages: () => [Buffer.alloc(0)],
    Run: runProgram,
    RunPlugin: runPack,
    Cancel: () => [Buffer.alloc(0)],
  }),
);

/** Serves a pack until the CLI ends the call. Its first message is the output of the pack: its port. */
async function* runPack(request: Buffer): AsyncGenerator<Buffer> {
  const [pwd, info] = [fieldOf(request, 1), fieldOf(request, 5)];
  const directory = fieldOf(info, 2).toString() || pwd.toString();
  const pack = JSON.parse(readFileSync(join(directory, 'policy.json'), 'utf8')) as Pack;
  yield encode([[1, `${await servePack(pack)}\n`]]);
  await new Promise(() => {});
}

function servePack({ name, version, policy, forbiddenType }: Pack): Promise<number> {
  const described = encode([
    [1, policy],
    [2, policy],
    [3, 'A policy of the tests'],
    [4, 'This is not allowed'],
    [5, mandatory],
    [7, resourcePolicy],
  ]);
  return serveGrpc({
    GetPluginInfo: () => [encode([[1, version]])],
    GetAnalyzerInfo: () => [
      encode([
        [1, name],
        [2, 'A pack of the tests'],
        [3, described],
        [4, version],
        [5, 1],
      ]),
    ],
    Handshake: () => [Buffer.alloc(0)],
    ConfigureStack: () => [Buffer.alloc(0)],
    Configure: () => [Buffer.alloc(0)],
    Analyze: (request) => {
      if (fieldOf(request, 1).toString() !== forbiddenType) return [Buffer.alloc(0)];
      const violation = encode([
        [1, policy],
        [2, name],
        [3, version],
        [4, 'A policy of the tests'],
        [5, `${forbiddenType} is not allowed`],
        [7, mandatory],
        [8, fieldOf(request, 3)],
      ]);
      return [encode([[2, violation]])];
    },
    AnalyzeStack: () => [Buffer.alloc(0)],
    Remediate: () => [Buffer.alloc(0)],
    Cancel: () => [Buffer.alloc(0)],
  });
}
