import { beforeAll, describe, expect, test } from '@jest/globals';
import { secretSettings } from '../../src/shared/platform/config/settings.ts';
import type { Manifest } from '../../testkit/chart.ts';
import { describeWithTools } from '../support/tools.ts';
import { manifestsOf, ofKind, type Pod, podsOf, selects } from './support/objects.ts';
import { valueSets } from './support/value-sets.ts';

// What a reviewer of manifests asks of each object, whatever the values.

await describeWithTools('every object of the chart', ['chart-tools'], () => {
  describe.each(Object.entries(valueSets))('with %s', (_, values) => {
    let manifests: Manifest[];
    let pods: Pod[];
    beforeAll(async () => {
      manifests = await manifestsOf(values);
      pods = podsOf(manifests);
    });
    const deployed = (): Pod[] => pods.filter(({ owner }) => owner.kind === 'Deployment');

    test('has a name of its own, a namespace and the labels that tools look for', () => {
      const names = manifests.map(({ kind, metadata }) => `${kind}/${metadata.name}`);
      expect(new Set(names).size).toBe(names.length);
      for (const { metadata } of manifests) {
        expect(metadata.name).toMatch(/^[a-z0-9-]{1,63}$/);
        expect(metadata).toMatchObject({
          namespace: 'holdfast',
          labels: {
            'app.kubernetes.io/instance': 'holdfast',
            'app.kubernetes.io/part-of': 'holdfast',
            'app.kubernetes.io/version': expect.stringMatching(/^\d/),
          },
        });
      }
    });

    test('meets the restricted pod security standard', () => {
      const permitted = ['configMap', 'csi', 'downwardAPI', 'emptyDir', 'ephemeral', 'projected', 'secret'];
      for (const { container, role, spec } of pods) {
        expect(spec.containers).toHaveLength(1);
        for (const key of ['hostNetwork', 'hostPID', 'hostIPC', 'initContainers']) expect(spec).not.toHaveProperty(key);
        expect(spec.securityContext).toMatchObject({
          runAsNonRoot: true,
          runAsUser: 1000,
          seccompProfile: { type: 'RuntimeDefault' },
        });
        expect(container.securityContext).toEqual({
          allowPrivilegeEscalation: false,
          readOnlyRootFilesystem: true,
          capabilities: { drop: ['ALL'], ...(role === 'web' ? { add: ['NET_BIND_SERVICE'] } : {}) },
        });
        for (const { name: __, ...volume } of spec.volumes)
          expect(permitted).toEqual(expect.arrayContaining(Object.keys(volume)));
        for (const port of container.ports ?? []) expect(port).not.toHaveProperty('hostPort');
      }
    });

    test('gives pods no token of the cluster and no variables that name services', () => {
      for (const { spec } of pods)
        expect(spec).toMatchObject({ automountServiceAccountToken: false, enableServiceLinks: false });
      for (const account of ofKind(manifests, 'ServiceAccount'))
        expect(account['automountServiceAccountToken']).toBe(false);
    });

    test('uses service accounts that exist, each for one role', () => {
      const made = ofKind(manifests, 'ServiceAccount').map(({ metadata }) => metadata.name);
      const used = pods.map(({ spec }) => spec.serviceAccountName);
      expect(used.filter((name) => made.includes(name)).sort()).toEqual(made.sort());
    });

    test('names its images exactly', () => {
      for (const { container } of pods)
        expect(container.image).toMatch(/^[^:@]+(:(?!latest$)[\w.-]+|@sha256:[0-9a-f]{64})$/);
    });

    test('asks for processor and memory, and limits its memory and its files', () => {
      for (const { container, spec } of pods) {
        expect(container.resources).toMatchObject({
          requests: { cpu: expect.any(String), memory: expect.any(String) },
          limits: { memory: expect.any(String) },
        });
        for (const { emptyDir } of spec.volumes) if (emptyDir) expect(emptyDir).toHaveProperty('sizeLimit');
      }
    });

    test('holds no secret', () => {
      expect(ofKind(manifests, 'Secret')).toEqual([]);
      for (const { env } of pods) {
        const names = env.map(({ name }) => name);
        expect(new Set(names).size).toBe(names.length);
        for (const { name, value } of env) {
          const isSecret = (secretSettings as readonly string[]).includes(name) || /^AWS_.*KEY/.test(name);
          expect({ name, isLiteral: value !== undefined }).toEqual({ name, isLiteral: !isSecret });
          expect(value ?? '').not.toMatch(/:\/\/[^/]*@/);
        }
      }
    });

    test('is probed, and not restarted for a fault of another part', () => {
      for (const { container, role } of deployed()) {
        expect(container).toMatchObject({
          livenessProbe: { tcpSocket: expect.anything() },
          readinessProbe: { httpGet: expect.anything() },
        });
        // A burst makes every replica slow.
        if (role !== 'web') expect(container.readinessProbe.timeoutSeconds).toBeGreaterThanOrEqual(15);
        if (role !== 'web') expect(container.startupProbe).toMatchObject({ httpGet: { path: '/healthz' } });
      }
    });

    test('has the time to stop that its process takes at most', () => {
      for (const { container, env, role, spec } of deployed()) {
        const seconds = (name: string): number => Number(env.find((each) => each.name === name)?.value ?? 0);
        const drainSeconds = container.lifecycle?.preStop.sleep.seconds ?? seconds('HOLDFAST_DRAIN_SECONDS');
        const needed = drainSeconds + seconds('HOLDFAST_SHUTDOWN_SECONDS');
        expect(spec.terminationGracePeriodSeconds).toBeGreaterThanOrEqual(needed + 5);
        // A proxy has noticed before a replica stops listening.
        if (role !== 'worker')
          expect(drainSeconds).toBeGreaterThan(
            container.readinessProbe.periodSeconds * (container.readinessProbe.failureThreshold ?? 3) - 1,
          );
      }
    });

    test('survives the loss of a node and the drain of one', () => {
      const budgets = ofKind(manifests, 'PodDisruptionBudget');
      for (const { labels, owner, spec } of deployed()) {
        expect(selects(owner['spec'].selector, labels)).toBe(true);
        const own = budgets.filter((budget) => selects(budget['spec'].selector, labels));
        expect(own).toMatchObject([{ spec: { maxUnavailable: 1 } }]);
        const keys = spec.topologySpreadConstraints.map((each: { topologyKey: string }) => each.topologyKey);
        expect(keys).toEqual(['topology.kubernetes.io/zone', 'kubernetes.io/hostname']);
        for (const { labelSelector } of spec.topologySpreadConstraints)
          expect(selects(labelSelector, labels)).toBe(true);
        expect(owner['spec'].strategy.rollingUpdate.maxSurge).toBe(1);
      }
      expect(budgets).toHaveLength(deployed().length);
    });

    test('leaves the number of its pods to at most one scaler', () => {
      const scalers = [...ofKind(manifests, 'HorizontalPodAutoscaler'), ...ofKind(manifests, 'ScaledObject')];
      const targets = scalers.map((scaler) => scaler['spec'].scaleTargetRef.name);
      expect(new Set(targets).size).toBe(targets.length);
      for (const { owner } of deployed())
        expect({ name: owner.metadata.name, fixed: owner['spec'].replicas !== undefined }).toEqual({
          name: owner.metadata.name,
          fixed: !targets.includes(owner.metadata.name),
        });
    });

    test('is reached through services whose ports exist, and by clients on no management port', () => {
      for (const service of ofKind(manifests, 'Service')) {
        const { clusterIP, ports, selector } = service['spec'];
        const behind = pods.filter(({ labels }) => selects({ matchLabels: selector }, labels));
        for (const { targetPort } of ports) {
          const having = behind.filter(({ container }) =>
            (container.ports ?? []).some((port: { name: string }) => port.name === targetPort),
          );
          expect(having.length).toBeGreaterThan(0);
          if (clusterIP !== 'None') {
            expect(targetPort).not.toBe('management');
            expect(having).toEqual(behind);
          }
        }
      }
      for (const ingress of ofKind(manifests, 'Ingress'))
        for (const { http } of ingress['spec'].rules)
          for (const { backend } of http.paths) {
            const service = manifests.find(
              ({ kind, metadata }) => kind === 'Service' && metadata.name === backend.service.name,
            );
            expect(service?.['spec'].ports.map(({ name }: { name: string }) => name)).toContain(
              backend.service.port.name,
            );
          }
    });

    test('is matched by no rule of a network policy that names neither a peer nor a port', () => {
      for (const policy of ofKind(manifests, 'NetworkPolicy'))
        for (const rule of [...(policy['spec'].ingress ?? []), ...(policy['spec'].egress ?? [])]) {
          expect(rule.ports?.length).toBeGreaterThan(0);
          for (const peer of rule.to ?? rule.from ?? []) expect(Object.keys(peer).length).toBeGreaterThan(0);
        }
    });
  });
});
