import { type CSSProperties, type ReactNode, useLayoutEffect, useRef, useState } from 'react';
import { Button } from './button.tsx';
import styles from './clamped.module.css';
import { clampedTexts } from './texts.tsx';

/** The first lines, and a button for the rest. `of` is the kind of text, such as "message". */
export function Clamped({
  children,
  lines,
  of,
}: {
  readonly children: ReactNode;
  readonly lines: number;
  readonly of: string;
}) {
  const text = useRef<HTMLDivElement>(null);
  const [isCut, setIsCut] = useState(false);
  const [isOpen, setIsOpen] = useState(false);
  useLayoutEffect(() => {
    const shown = text.current;
    if (shown === null || isOpen) return undefined;
    // One more line takes no more space than the button.
    const measure = (): void =>
      setIsCut(shown.scrollHeight > Number.parseFloat(getComputedStyle(shown).lineHeight) * (lines + 1) + 1);
    measure();
    const observer = new ResizeObserver(measure);
    observer.observe(shown);
    if (shown.firstElementChild) observer.observe(shown.firstElementChild);
    return () => observer.disconnect();
  }, [isOpen, lines]);
  return (
    <>
      {/* biome-ignore lint/a11y/noStaticElementInteractions: it only handles events of the links in it. */}
      <div
        ref={text}
        className={isOpen ? undefined : styles['text']}
        style={{ '--lines': isCut ? lines : lines + 1 } as CSSProperties}
        // A keyboard user who reaches a link in the hidden part must see it.
        onFocus={() => (isCut ? setIsOpen(true) : undefined)}
      >
        {children}
      </div>
      {isCut ? (
        <Button size="small" className={styles['button']} aria-expanded={isOpen} onClick={() => setIsOpen(!isOpen)}>
          {isOpen ? clampedTexts.showLess : clampedTexts.showWhole(of)}
        </Button>
      ) : null}
    </>
  );
}
