import { type Manifest, parseManifests, renderChart, type Values } from '../../../testkit/chart.ts';

/** An entry of the environment of a container. */
export interface Variable {
  readonly name: string;
  readonly value?: string;
  readonly valueFrom?: { readonly secretKeyRef: { readonly name: string; readonly key: string } };
}

/** A pod that a Deployment or Job starts. */
export interface Pod {
  readonly role: string;
  readonly owner: Manifest;
  readonly labels: Readonly<Record<string, string>>;
  readonly spec: Manifest['spec'];
  readonly container: Manifest['container'];
  readonly env: readonly Variable[];
}

/** Renders the chart. Throws if Helm refuses the values. */
export async function manifestsOf(values: Values): Promise<Manifest[]> {
  const { errors, output, passed } = await renderChart(values);
  if (!passed) throw new Error(errors);
  return parseManifests(output);
}

/** Returns the pods of all Deployments and Jobs. */
export function podsOf(manifests: readonly Manifest[]): Pod[] {
  return manifests
    .filter(({ kind }) => kind === 'Deployment' || kind === 'Job')
    .map((owner) => {
      const { metadata, spec } = owner['spec'].template;
      const [container] = spec.containers;
      const role = metadata.labels['app.kubernetes.io/component'];
      return { role, owner, labels: metadata.labels, spec, container, env: container.env };
    });
}

export const ofKind = (manifests: readonly Manifest[], kind: string): Manifest[] =>
  manifests.filter((manifest) => manifest.kind === kind);

/** Whether labels match a selector. */
export function selects(
  selector: {
    readonly matchLabels?: Readonly<Record<string, string>>;
    readonly matchExpressions?: readonly { readonly key: string; readonly values: readonly string[] }[];
  },
  labels: Readonly<Record<string, string>>,
): boolean {
  const { matchExpressions = [], matchLabels = {} } = selector;
  return (
    Object.entries(matchLabels).every(([key, value]) => labels[key] === value) &&
    matchExpressions.every(({ key, values }) => values.includes(labels[key] ?? ''))
  );
}
