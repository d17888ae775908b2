package judge;

import java.security.Provider;
import java.security.SecureRandomSpi;
import java.security.Security;
import java.util.Random;

/** The source of Java's secure random numbers, so that the ids that Kafka makes follow from the seed too. */
public final class Randomness extends SecureRandomSpi {
    private static final long serialVersionUID = 1L;
    private static Random random = new Random(0);

    /** Called by Java's provider mechanism. */
    public Randomness() {}

    /** Must be called before the first id is made. */
    static void install() {
        Security.insertProviderAt(new Provider("Judge", "1", "Random numbers from a seed") {
            private static final long serialVersionUID = 1L;

            {
                put("SecureRandom.Judge", Randomness.class.getName());
            }
        }, 1);
    }

    static void seed(long seed) {
        random = new Random(seed);
    }

    @Override
    protected void engineSetSeed(byte[] seed) {}

    @Override
    protected void engineNextBytes(byte[] bytes) {
        random.nextBytes(bytes);
    }

    @Override
    protected byte[] engineGenerateSeed(int length) {
        return new byte[length];
    }
}
