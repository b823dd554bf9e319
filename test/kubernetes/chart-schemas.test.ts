import { expect, test } from '@jest/globals';
import { lintChart, parseManifests, renderChart, runTool } from '../../testkit/chart.ts';
import { kubernetesVersions } from '../../testkit/toolchain/kubernetes-schemas.ts';
import { ensureToolchain } from '../../testkit/toolchain/toolchain.ts';
import { describeWithTools } from '../support/tools.ts';
import { valueSets } from './support/value-sets.ts';

interface Verdict {
  readonly kind: string;
  readonly name: string;
  readonly status: string;
  readonly msg: string;
}

/** Checks manifests against the schemas of a version, which permit no unknown field. */
async function validate(manifests: readonly string[], version: string): Promise<Verdict[]> {
  const schemas = (await ensureToolchain({ only: ['kubernetes-schemas'] }))['kubernetes-schemas'];
  const paths = [
    '{{.NormalizedKubernetesVersion}}-local-strict/{{.ResourceKind}}{{.KindSuffix}}.json',
    'custom/{{.ResourceKind}}-{{.ResourceAPIVersion}}.json',
  ];
  const args = paths.map((path) => `-schema-location=${schemas}/${path}`);
  const { errors, output } = await runTool(
    'kubeconform',
    ['-strict', '-verbose', '-output=json', `-kubernetes-version=${version}`, ...args],
    manifests.join('\n---\n'),
  );
  expect(errors).toBe('');
  return (JSON.parse(output) as { resources: Verdict[] }).resources;
}

await describeWithTools('the chart', ['chart-tools', 'kubeconform', 'kubernetes-schemas'], () => {
  test.each(Object.entries(valueSets))('passes the strict lint of Helm with %s', async (_, values) => {
    expect(await lintChart(values)).toEqual({ passed: true, output: '', errors: '' });
  });

  test.each(kubernetesVersions)('gives objects that Kubernetes %s knows, to the last field', async (version) => {
    const rendered = await Promise.all(Object.values(valueSets).map((values) => renderChart(values, version)));
    expect(rendered.filter(({ passed }) => !passed)).toEqual([]);
    const outputs = rendered.map(({ output }) => output);
    const verdicts = await validate(outputs, version);
    expect(verdicts.filter(({ status }) => status !== 'statusValid')).toEqual([]);
    expect(verdicts).toHaveLength(outputs.flatMap(parseManifests).length);
  });

  test('is checked by schemas that refuse an unknown field, a wrong type and an unknown kind', async () => {
    const manifest = (name: string, kind: string, spec: object, apiVersion = 'apps/v1'): string =>
      JSON.stringify({ apiVersion, kind, metadata: { name }, spec });
    const spec = { selector: {}, template: { spec: { containers: [{ name: 'a' }] } } };
    const verdicts = await validate(
      [
        manifest('right', 'Deployment', spec),
        manifest('unknown-field', 'Deployment', { ...spec, replica: 3 }),
        manifest('wrong-type', 'Deployment', { ...spec, replicas: '3' }),
        manifest('unknown-kind', 'Deploymint', spec),
        manifest(
          'scaler',
          'ScaledObject',
          { scaleTargetRef: { name: 'a' }, triggers: [], trigger: 1 },
          'keda.sh/v1alpha1',
        ),
        manifest('route', 'HTTPRoute', { hostname: 'a' }, 'gateway.networking.k8s.io/v1'),
      ],
      kubernetesVersions[0],
    );
    expect(Object.fromEntries(verdicts.map(({ name, status }) => [name, status]))).toEqual({
      right: 'statusValid',
      'unknown-field': 'statusInvalid',
      'wrong-type': 'statusInvalid',
      'unknown-kind': 'statusError',
      scaler: 'statusInvalid',
      route: 'statusInvalid',
    });
  });

  test('is not for older versions of Kubernetes', async () => {
    const { errors, passed } = await renderChart(valueSets['documented'] ?? {}, '1.29.0');
    expect(passed).toBe(false);
    expect(errors).toContain('not for v1.29.0');
  });
});
