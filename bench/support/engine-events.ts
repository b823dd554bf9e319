import { createHash } from 'node:crypto';

/** Fields of cloud resources that the engine repeats in its events: most of a state's text is like this. */
function inputsOf(id: string, name: string): object {
  return {
    ami: `ami-${id.slice(0, 17)}`,
    instanceType: 't3.medium',
    subnetId: `subnet-${id.slice(20, 37)}`,
    securityGroupIds: [`sg-${id.slice(3, 20)}`, `sg-${id.slice(13, 30)}`],
    tags: { Name: name, environment: 'production', owner: 'platform-team', 'managed-by': 'pulumi' },
    userDataBase64: Buffer.from(`#!/bin/sh\nexport HOST=${name}\nset -e\nyum install -y docker\n`).toString('base64'),
    __defaults: [],
  };
}

/**
 * Two events for each resource and some output, as the CLI sends them. Ids and hashes, about a tenth of the text, differ in each resource.
 */
export function engineEvents(resources: number, seed: string): string[] {
  const events: string[] = [];
  const add = (payload: object): void => {
    events.push(
      JSON.stringify({ sequence: events.length, timestamp: 1_780_000_000 + (events.length >> 4), ...payload }),
    );
  };
  add({ preludeEvent: { config: { 'aws:region': 'eu-west-1', 'bench:size': String(resources) } } });
  const parent = 'urn:pulumi:dev::bench::pulumi:pulumi:Stack::bench-dev';
  const provider = 'urn:pulumi:dev::bench::pulumi:providers:aws::default_7_8_0::0b3f8c1e-91d5-4b2a-9d0c-6f1f2f3a4b5c';
  for (let number = 0; number < resources; number++) {
    const name = `web-${number}`;
    const id = createHash('sha256').update(`${seed} ${number}`).digest('hex');
    const urn = `urn:pulumi:dev::bench::aws:ec2/instance:Instance::${name}`;
    const inputs = inputsOf(id, name);
    const outputs = {
      ...inputs,
      id: `i-${id.slice(40, 57)}`,
      arn: `arn:aws:ec2:eu-west-1:123456789012:instance/i-${id.slice(40, 57)}`,
      privateIp: `10.0.${number % 250}.${(number >> 3) % 250}`,
      instanceState: 'running',
    };
    const state = {
      type: 'aws:ec2/instance:Instance',
      urn,
      custom: true,
      id: outputs.id,
      parent,
      inputs,
      outputs,
      provider,
    };
    const isUpdated = number % 5 === 0;
    const metadata = {
      op: isUpdated ? 'update' : 'same',
      urn,
      type: state.type,
      old: state,
      new: { ...state, inputs: { ...inputs, ...(isUpdated ? { ami: `ami-${id.slice(5, 22)}` } : {}) } },
      detailedDiff: isUpdated ? { ami: { diffKind: 'update', inputDiff: true } } : null,
      logical: true,
      provider,
    };
    add({ resourcePreEvent: { metadata } });
    if (number % 10 === 0) {
      const message = `<{%fg 13%}>aws:ec2:Instance<{%reset%}> ${name} <{%fg 3%}>changed in ${number % 7} s<{%reset%}>\n`;
      add({ diagnosticEvent: { urn, message, color: 'raw', severity: 'info' } });
    }
    add({ resOutputsEvent: { metadata } });
  }
  const resourceChanges = { same: resources - Math.ceil(resources / 5), update: Math.ceil(resources / 5) };
  add({
    summaryEvent: { maybeCorrupt: false, durationSeconds: 60, resourceChanges, PolicyPacks: {}, isPreview: false },
  });
  return events;
}
