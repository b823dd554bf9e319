import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

/** A received span. Times are in nanoseconds since 1970. */
export interface ReceivedSpan {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly name: string;
  readonly startTimeUnixNano: string;
  readonly endTimeUnixNano: string;
  readonly status: { readonly code?: number };
  readonly service: string;
  readonly text: string;
}

interface OtlpRequest {
  readonly resourceSpans: readonly {
    readonly resource: { readonly attributes: readonly { key: string; value: { stringValue?: string } }[] };
    readonly scopeSpans: readonly { readonly spans: readonly Omit<ReceivedSpan, 'service' | 'text'>[] }[];
  }[];
}

export interface OtlpReceiver {
  readonly url: string;
  readonly spans: readonly ReceivedSpan[];
  ofTrace(traceId: string): ReceivedSpan[];
  close(): Promise<void>;
}

/** Sends its spans to the receiver, if the caller of a request samples it. Each write is a job. */
export function tracedSettings({ url }: OtlpReceiver) {
  return {
    HOLDFAST_DIRECT_BYTES: '1',
    OTEL_EXPORTER_OTLP_ENDPOINT: url,
    OTEL_EXPORTER_OTLP_PROTOCOL: 'http/json',
    OTEL_TRACES_SAMPLER: 'parentbased_always_off',
    OTEL_BSP_SCHEDULE_DELAY: '200',
  };
}

/** Receives spans as JSON over HTTP. */
export async function startOtlpReceiver(): Promise<OtlpReceiver> {
  const spans: ReceivedSpan[] = [];
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const { resourceSpans } = JSON.parse(Buffer.concat(chunks).toString()) as OtlpRequest;
      for (const { resource, scopeSpans } of resourceSpans) {
        const service = resource.attributes.find(({ key }) => key === 'service.name')?.value.stringValue ?? '';
        for (const span of scopeSpans.flatMap((scope) => scope.spans))
          spans.push({ ...span, service, text: JSON.stringify(span) });
      }
      response.writeHead(200, { 'content-type': 'application/json' }).end('{}');
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    spans,
    ofTrace: (traceId) => spans.filter((span) => span.traceId === traceId),
    close: async () => {
      if (!server.listening) return;
      server.closeAllConnections();
      await new Promise<void>((resolve) => server.close(() => resolve()));
    },
  };
}
