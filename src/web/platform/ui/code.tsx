import { Check, Copy } from 'lucide-react';
import { useState } from 'react';
import { Button } from './button.tsx';
import styles from './code.module.css';
import { copyTexts } from './texts.tsx';

/** A command or a value, with a button that copies it. */
export function Code({ children }: { readonly children: string }) {
  return (
    <div className={styles['code']}>
      <pre tabIndex={-1}>{children}</pre>
      <CopyButton text={children} />
    </div>
  );
}

export function CopyButton({ label = copyTexts.copy, text }: { readonly text: string; readonly label?: string }) {
  const [isCopied, setIsCopied] = useState(false);
  const copy = async (): Promise<void> => {
    await navigator.clipboard.writeText(text);
    setIsCopied(true);
    setTimeout(() => setIsCopied(false), 1500);
  };
  return (
    <Button
      kind="quiet"
      size="icon"
      aria-label={isCopied ? copyTexts.copied : label}
      title={label}
      onClick={() => void copy().catch(() => {})}
    >
      {isCopied ? <Check size={15} /> : <Copy size={15} />}
    </Button>
  );
}
